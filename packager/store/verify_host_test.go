package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/testelf"
)

// engineTree is what the old script installs: a launcher, a program and a
// backend that needs ROCm, which a launcher tells the loader of.
func engineTree(t *testing.T, dir, launcher string) {
	t.Helper()
	files := map[string][]byte{
		"1bit":                            []byte(launcher),
		"hrx/llama/bin/llama-server":      testelf.File{Interp: testelf.Interp, Needed: []string{"libllama.so", "libc.so.6"}}.Bytes(),
		"hrx/llama/lib/libllama.so":       testelf.File{Runpath: []string{"/home/me/build/bin"}, Needed: []string{"libggml.so"}}.Bytes(),
		"hrx/llama/lib/libggml.so":        testelf.File{}.Bytes(),
		"hrx/llama/lib/libggml-hip.so":    testelf.File{Needed: []string{"libamdhip64.so.7"}}.Bytes(),
		"hrx/llama/lib/kernels/a.hsaco":   []byte("no code at all"),
		"hrx/llama/lib/libdamaged.so.txt": []byte("\x7fELF\x02\x01\x01, which is a text for people about ELF files"),
	}
	for name, b := range files {
		put(t, filepath.Join(dir, name), b)
	}
}

func put(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyLooksForLibrariesOnTheHost(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "bin/sh"), nil)
	put(t, filepath.Join(root, "lib64/ld-linux-x86-64.so.2"), testelf.File{Soname: "ld-linux-x86-64.so.2"}.Bytes())
	put(t, filepath.Join(root, "usr/lib64/libc.so.6"), testelf.File{Soname: "libc.so.6", Defines: []string{"GLIBC_2.36"}}.Bytes())
	rocm := filepath.Join(root, "opt/rocm-therock/lib/libamdhip64.so.7")
	put(t, rocm, testelf.File{Needed: []string{"libhsa-runtime64.so.1"}}.Bytes())
	hsa := filepath.Join(root, "opt/rocm-therock/lib/libhsa-runtime64.so.1")
	put(t, hsa, testelf.File{}.Bytes())

	const launcher = "#!/bin/sh\nLD_LIBRARY_PATH=$here/hrx/llama/lib:/opt/rocm-therock/lib exec \"$here/hrx/llama/bin/llama-server\" \"$@\"\n"
	lacks := []Problem{{Path: "hrx/llama/lib/libggml-hip.so", What: "needs libamdhip64.so.7, which neither the package nor this host has", Host: true}}
	for _, tt := range []struct {
		name, launcher string
		change         func()
		want           []Problem
	}{
		{"that a launcher tells of", launcher, func() {}, []Problem{}},
		{"that nothing tells of", "#!/bin/sh\n", func() {}, lacks},
		{"that needs what is not there", launcher, func() {
			if err := os.Remove(hsa); err != nil {
				t.Fatal(err)
			}
		}, []Problem{{Path: "hrx/llama/lib/libggml-hip.so", What: "needs libamdhip64.so.7, and that needs libhsa-runtime64.so.1, which neither the package nor this host has", Host: true}}},
		{"that are not there", launcher, func() {
			if err := os.RemoveAll(filepath.Dir(rocm)); err != nil {
				t.Fatal(err)
			}
		}, lacks},
		{"for a program of another host", launcher, func() {
			if err := os.RemoveAll(filepath.Join(root, "usr")); err != nil {
				t.Fatal(err)
			}
		}, append(lacks[:1:1], Problem{Path: "hrx/llama/bin/llama-server", What: "needs libc.so.6, which neither the package nor this host has", Host: true})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			s.Root = root
			dir := filepath.Join(s.Dir, "1bit-hrx-3092596")
			engineTree(t, dir, tt.launcher)
			tt.change()
			p, err := s.Import(context.Background(), dir)
			if err != nil {
				t.Fatal(err)
			}
			v, err := s.Verify(context.Background(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := &Verification{ID: "hrx-3092596", OK: len(tt.want) == 0, Files: 7, Bytes: p.Size, Problems: tt.want}
			if len(tt.want) == 2 { // sorted by path
				want.Problems = []Problem{tt.want[1], tt.want[0]}
			}
			if diff := cmp.Diff(want, v); diff != "" {
				t.Error(diff)
			}
			if damaged := v.Damaged(); len(damaged) > 0 {
				t.Errorf("the package itself: %v", damaged)
			}
			// A file that is damaged is the package's own trouble, and no word of the host.
			put(t, filepath.Join(dir, "hrx/llama/lib/libggml-hip.so"), testelf.File{Needed: []string{"libother.so.9"}}.Bytes())
			v, err = s.Verify(context.Background(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Damaged()) == 0 || v.OK {
				t.Errorf("a damaged file: %+v", v)
			}
		})
	}
}

// A file can be what its manifest says and still be only a part of a library.
func TestVerifyNamesCutOffLibrary(t *testing.T) {
	whole := testelf.File{Sections: []testelf.Section{{Name: ".data", Data: make([]byte, 9000)}}}.Bytes()
	s := newStore(t)
	dir := filepath.Join(s.Dir, "1bit-hrx-3092596")
	put(t, filepath.Join(dir, "1bit"), []byte("#!/bin/sh\n"))
	put(t, filepath.Join(dir, "libplugin.so"), whole[:5000])
	p, err := s.Import(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Verify(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Problem{{Path: "libplugin.so", What: fmt.Sprintf("is cut off: it has 5000 bytes, and what is loaded of it ends at byte %d", len(whole))}}
	if diff := cmp.Diff(want, v.Damaged()); diff != "" {
		t.Error(diff)
	}
}
