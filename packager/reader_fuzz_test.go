package packager

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReaderCutAndFlipped cuts an archive at every byte and flips bits of each.
// What is still taken says the same.
func TestReaderCutAndFlipped(t *testing.T) {
	good := archiveOf(t, example(), contents)
	for i := range good {
		if err := readAll(good[:i], Limits{}); !errors.Is(err, ErrIntegrity) || i > 0 && !strings.Contains(err.Error(), "cut off") {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	for i := 0; i < 8*len(good); i += 5 {
		b := slices.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		m, texts, err := contentsOf(b)
		if err != nil {
			if !errors.Is(err, ErrIntegrity) {
				t.Errorf("bit %d: %v", i, err)
			}
			continue
		}
		if diff := cmp.Diff(example(), m); diff != "" {
			t.Errorf("bit %d: another manifest: %s", i, diff)
		}
		// A flipped bit of a content is the digest's to find.
		for _, f := range m.Files {
			if f.Type == TypeFile && sha(texts[f.Path]) == f.SHA256 && texts[f.Path] != contents[f.Path] {
				t.Errorf("bit %d: %s is another", i, f.Path)
			}
		}
	}
}

func contentsOf(b []byte) (*Manifest, map[string]string, error) {
	r, err := NewReader(bytes.NewReader(b), Limits{})
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	texts := map[string]string{}
	for {
		f, err := r.Next()
		if err == io.EOF {
			return r.Manifest(), texts, nil
		}
		if err != nil {
			return nil, nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, nil, err
		}
		texts[f.Path] = string(content)
	}
}

func FuzzReader(f *testing.F) {
	good := tarOf(f, crafts(f, example(), contents))
	f.Add(good, false)
	f.Add(archiveOf(f, example(), contents), true)
	f.Add(good[:2000], false)
	f.Fuzz(func(t *testing.T, b []byte, compressed bool) {
		if !compressed {
			// With sums that are right, or no mutation would get far.
			b = compress(t, mended(b))
		}
		tree, err := unpack(t, b) // it checks that nothing outside is touched
		if err != nil {
			if !errors.Is(err, ErrIntegrity) {
				t.Fatalf("error without ErrIntegrity: %v", err)
			}
			return
		}
		// Whatever was taken is what its manifest says.
		r, err := NewReader(bytes.NewReader(b), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, file := range r.Manifest().Files {
			got := tree[file.Path]
			if file.Type != TypeFile {
				if got == "" || !strings.HasSuffix(got, file.Target) || strings.HasPrefix(got, "d") != (file.Type == TypeDir) {
					t.Fatalf("%q is %q, the manifest says %s %q", file.Path, got, file.Type, file.Target)
				}
				continue
			}
			if _, content, _ := strings.Cut(got, "Z "); sha(content) != file.SHA256 {
				t.Fatalf("%q has other content than the manifest says", file.Path)
			}
		}
		if len(tree) != len(r.Manifest().Files)+1 {
			t.Fatalf("%d entries for %d in the manifest", len(tree), len(r.Manifest().Files))
		}
	})
}
