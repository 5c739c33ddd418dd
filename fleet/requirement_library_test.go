package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/testelf"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// A recorded host with glibc 2.36 and half of ROCm.
func TestMissingLibraries(t *testing.T) {
	root := t.TempDir()
	for name, f := range map[string]testelf.File{
		"usr/lib/x86_64-linux-gnu/libc.so.6":      {Soname: "libc.so.6", Defines: []string{"GLIBC_2.4", "GLIBC_2.36"}},
		"usr/lib/x86_64-linux-gnu/libvulkan.so.1": {Needed: []string{"libc.so.6"}},
		"opt/rocm-therock/lib/libamdhip64.so.7":   {Runpath: []string{"$ORIGIN"}, Needed: []string{"libc.so.6", "libhsa-runtime64.so.1"}},
	} {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := &Host{Root: root}
	dirs := []string{"/opt/rocm-therock/lib"}
	for _, tt := range []struct {
		name string
		m    packager.Manifest
		want []string
	}{
		{"nothing wanted", packager.Manifest{}, nil},
		{"all there", packager.Manifest{Machine: "x86_64", Glibc: "2.36", Requires: []packager.Requirement{{Kind: "library", Name: "libvulkan.so.1"}}}, nil},
		{"glibc", packager.Manifest{Machine: "x86_64", Glibc: "2.38"}, []string{"it needs glibc 2.38, and this host has 2.36"}},
		{"machine", packager.Manifest{Machine: "s390x", Glibc: "2.38"}, []string{"it is for s390x, and this host is x86_64"}},
		{"libraries", packager.Manifest{
			Machine:  "x86_64",
			Requires: []packager.Requirement{{Kind: "path", Name: root + "/none"}, {Kind: "library", Name: "libmoon.so.1"}},
			HostLibraries: []packager.HostLibrary{
				{Name: "libamdhip64.so.7", NeededBy: "lib/libggml-hip.so", Dirs: dirs}, {Name: "librocblas.so.5", NeededBy: "lib/libggml-hip.so", Dirs: dirs},
			},
		}, []string{
			"the path " + root + "/none is not there",
			"it needs libmoon.so.1, which neither the package nor this host has",
			"lib/libggml-hip.so needs libamdhip64.so.7, and that needs libhsa-runtime64.so.1, which neither the package nor this host has",
			"lib/libggml-hip.so needs librocblas.so.5, which neither the package nor this host has",
		}},
	} {
		if diff := cmp.Diff(tt.want, h.Missing(&tt.m)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// What the host lacks is no damage of a package: a rollback to it goes on.
func TestVerifyOfAPackageThatTheHostLacksSomethingFor(t *testing.T) {
	ctx := context.Background()
	home := t.TempDir()
	s := store.Open(filepath.Join(home, "data"), filepath.Join(home, "state"))
	s.Root = t.TempDir() // a host with no library at all
	dir := filepath.Join(s.Dir, "1bit-hrx-3092596")
	server := filepath.Join(dir, "hrx/llama/bin/llama-server")
	put := func(f testelf.File) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(server), 0o755), os.WriteFile(server, f.Bytes(), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	put(testelf.File{Interp: testelf.Interp, Needed: []string{"libamdhip64.so.7"}})
	p, err := s.Import(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify(ctx, p, nil); err != nil || v.OK || len(v.Damaged()) > 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	h := &Host{Store: s}
	if err := h.verify(ctx, p, true); err != nil {
		t.Errorf("refused: %v", err)
	}
	put(testelf.File{Interp: testelf.Interp, Needed: []string{"libamdhip64.so.8"}})
	if err := h.verify(ctx, p, true); !errors.Is(err, packager.ErrIntegrity) {
		t.Errorf("damage passes: %v", err)
	}
}
