package packager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var contents = map[string]string{
	"1bit": "front end", "hrx/llama/bin/libx.so.1": "library <&>", "hrx/llama/bin/llama-server": "server", "naïve name": "",
}

func opener(contents map[string]string) func(*File) (io.ReadCloser, error) {
	return func(f *File) (io.ReadCloser, error) {
		c, ok := contents[f.Path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(c)), nil
	}
}

func archiveOf(t testing.TB, m *Manifest, contents map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := WriteArchive(context.Background(), &buf, m, opener(contents), ArchiveOptions{}); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// unpack extracts b into a new folder and returns what is there afterwards.
func unpack(t testing.TB, b []byte) (tree map[string]string, err error) {
	t.Helper()
	outside := t.TempDir()
	inside := filepath.Join(outside, "inside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		entries, rerr := os.ReadDir(outside)
		if rerr != nil || len(entries) != 1 {
			t.Errorf("something outside was touched: %v, %v", entries, rerr)
		}
		// Let the clean-up of the test delete it.
		_ = filepath.WalkDir(inside, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(p, 0o755)
			}
			return err
		})
	}()
	r, err := NewReader(bytes.NewReader(b), Limits{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	root, err := os.OpenRoot(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := r.Extract(context.Background(), root, ExtractOptions{}); err != nil {
		return nil, err
	}
	return snapshot(t, inside), nil
}

// snapshot describes every entry of a folder.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			tree[rel] = info.Mode().String() + " " + info.ModTime().UTC().Format(time.RFC3339)
		case info.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			when := info.ModTime().UTC().Format(time.RFC3339)
			if rel == ManifestName {
				when = "unpacked now" // the only entry whose time is not in the archive
			}
			tree[rel] = info.Mode().String() + " " + when + " " + string(b)
		default:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			tree[rel] = "-> " + target
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestArchiveRoundTrip(t *testing.T) {
	m := example()
	var reports []int64
	var buf bytes.Buffer
	err := WriteArchive(context.Background(), &buf, m, opener(contents), ArchiveOptions{Progress: func(done, total int64) {
		if total != 26 {
			t.Errorf("total %d, want 26", total)
		}
		reports = append(reports, done)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(reports); n == 0 || reports[n-1] != 26 || !slices.IsSorted(reports) {
		t.Errorf("progress %v", reports)
	}
	got, err := unpack(t, buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if rest, ok := strings.CutPrefix(got[ManifestName], "-r--r--r-- "); !ok || !strings.HasSuffix(rest, " "+string(manifest)) {
		t.Errorf("manifest on disk: %q", got[ManifestName])
	}
	delete(got, ManifestName)
	const at = " 2026-10-26T07:33:20Z"
	want := map[string]string{
		"1bit": "-r-xr-xr-x" + at + " front end", "hrx": "dr-xr-xr-x" + at, "hrx/llama": "dr-xr-xr-x" + at, "hrx/llama/bin": "dr-xr-xr-x" + at,
		"hrx/llama/bin/libx.so": "-> libx.so.1", "hrx/llama/bin/libx.so.1": "-r--r--r--" + at + " library <&>",
		"hrx/llama/bin/llama-server": "-r-xr-xr-x" + at + " server", "naïve name": "-r--r--r--" + at + " ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestArchiveOfBigAndManyFiles(t *testing.T) {
	m := &Manifest{Schema: Schema, Flavour: "big", ID: "1"}
	contents := map[string]string{}
	add := func(name, content string) {
		contents[name] = content
		m.Files = append(m.Files, file(name, content))
	}
	add("a", strings.Repeat("0123456789abcdef", 3<<16)) // several chunks
	m.Files = append(m.Files, dir("d"))
	for i := range 200 {
		add("d/"+strings.Repeat("n", 1+i), strings.Repeat("x", i*37))
	}
	tree, err := unpack(t, archiveOf(t, m, contents))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range contents {
		if !strings.HasSuffix(tree[name], "Z "+content) {
			t.Errorf("%s: %.60q", name, tree[name])
		}
	}
	if len(tree) != len(m.Files)+1 {
		t.Errorf("%d entries", len(tree))
	}
}

func TestWriteArchiveNoticesChangedContent(t *testing.T) {
	for _, now := range []string{"front enD", "front", "front end and more", ""} {
		changed := maps.Clone(contents)
		changed["1bit"] = now
		err := WriteArchive(context.Background(), io.Discard, example(), opener(changed), ArchiveOptions{})
		if !errors.Is(err, ErrChanged) || errors.Is(err, ErrIntegrity) {
			t.Errorf("%q: %v", now, err)
		}
	}
}

func TestExtractStopsWithContext(t *testing.T) {
	r, err := NewReader(bytes.NewReader(archiveOf(t, example(), contents)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Extract(ctx, root, ExtractOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReaderPassesOnReadErrors(t *testing.T) {
	b := archiveOf(t, example(), contents)
	broken := errors.New("disk on fire")
	_, err := NewReader(io.MultiReader(bytes.NewReader(b[:40]), errReader{broken}), Limits{})
	if !errors.Is(err, broken) || errors.Is(err, ErrIntegrity) {
		t.Errorf("got %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
