package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/google/go-cmp/cmp"
)

func TestVerifyFindsEverything(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	p := install(t, s, "x", "a")
	var last int64
	v, err := s.Verify(ctx, p, func(done, total int64) {
		if total != p.Size {
			t.Errorf("total %d, want %d", total, p.Size)
		}
		last = done
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Verification{ID: "hrx-x", OK: true, Files: 4, Bytes: p.Size, Problems: []Problem{}}, v); diff != "" {
		t.Error(diff)
	}
	if last != p.Size {
		t.Errorf("progress ended at %d of %d", last, p.Size)
	}

	writable(p.Path)
	const bin = "hrx/llama/bin/"
	at := func(name string) string { return filepath.Join(p.Path, name) }
	lib, err := os.ReadFile(at(bin + "libx.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	lib[100] ^= 1
	stamp := time.Unix(p.Manifest.SourceDateEpoch, 0)
	for _, err := range []error{
		os.Chmod(at(bin+"libx.so.1"), 0o644), os.WriteFile(at(bin+"libx.so.1"), lib, 0), os.Chtimes(at(bin+"libx.so.1"), stamp, stamp), os.Chmod(at(bin+"libx.so.1"), 0o444),
		os.Remove(at(bin + "libx.so")), os.Symlink("/etc/passwd", at(bin+"libx.so")),
		os.Remove(at("1bit")),
		os.Chmod(at(bin+"llama-server"), 0o755),
		os.WriteFile(at("hrx/new"), nil, 0o444),
		os.Chmod(at(packager.ManifestName), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{bin + "deep", bin, "hrx/llama", "hrx", ""} {
		if err := os.Chmod(at(dir), 0o555); err != nil {
			t.Fatal(err)
		}
	}
	v, err = s.Verify(ctx, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1bit", packager.ManifestName, bin + "libx.so", bin + "libx.so.1", bin + "llama-server", "hrx/new"}
	var got []string
	for _, problem := range v.Problems {
		got = append(got, problem.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" || v.OK {
		t.Errorf("ok %v, %+v\n%s", v.OK, v.Problems, diff)
	}
}

func TestVerifyComparesManifest(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	p := install(t, s, "x", "a")
	m, _ := sample("x", "b")
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	writable(p.Path)
	name := filepath.Join(p.Path, packager.ManifestName)
	if err := errors.Join(os.Remove(name), os.WriteFile(name, b, 0o444)); err != nil {
		t.Fatal(err)
	}
	v, err := s.Verify(ctx, p, nil)
	if err != nil || v.OK {
		t.Errorf("a forged manifest passes: %+v, %v", v, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Verify(cancelled, p, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestVerifyOfAPackageThatGoes(t *testing.T) {
	s := newStore(t)
	p := install(t, s, "a", "")
	var once sync.Once
	_, err := s.Verify(context.Background(), p, func(int64, int64) {
		once.Do(func() {
			if err := s.Remove(context.Background(), p, nil); err != nil {
				t.Error(err)
			}
		})
	})
	if !errors.Is(err, ErrNotInstalled) {
		t.Errorf("got %v, which is no word of a removal", err)
	}
}
