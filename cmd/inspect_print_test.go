package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager"
)

func TestPrintManifest(t *testing.T) {
	yes := true
	m := &packager.Manifest{
		Flavour: "hrx", ID: "a", Version: "2026.44.0", Tag: "v2026.44",
		Components:  []packager.Component{{Name: "engine", Commit: "1234567", Declared: true}, {Name: "llama.cpp", Commit: "89abcde", Dirty: true}},
		EntryPoints: map[string]string{"1bit": "1bit"}, FrontDoor: []string{"serve", "bench"},
		Fixes:   []packager.Fix{{ID: "e#1", Title: "one", Carried: &yes, How: "the pin itself", Off: "X=0"}},
		Machine: "x86_64", GPUTargets: []string{"gfx1151", "gfx942"}, Glibc: "2.38",
		HostLibraries: []packager.HostLibrary{
			{Name: "libamdhip64.so.7", NeededBy: "bin/a", Dirs: []string{"/opt/rocm/lib"}}, {Name: "libvulkan.so.1", NeededBy: "bin/b"},
		},
		Requires: []packager.Requirement{{Kind: packager.RequireKernelParameter, Name: "amdgpu.x", Value: "0"}},
		Files:    []packager.File{{Path: "1bit", Type: packager.TypeFile, Size: 10}},
	}
	var b strings.Builder
	if err := printManifest(&b, m, "sha256:d"); err != nil {
		t.Fatal(err)
	}
	want := `package       hrx-a
version       2026.44.0  (tag v2026.44)
digest        sha256:d
files         1, 10 B
pin           engine 1234567  (declared)
pin           llama.cpp 89abcde  (with changes that no commit holds)
entry point   1bit = 1bit
front door    serve bench
fix           e#1 yes: the pin itself  (one)
                X=0 turns it off
machine       x86_64
GPU targets   gfx1151, gfx942
glibc         2.38
host library  libamdhip64.so.7  (for bin/a, looked for in /opt/rocm/lib)
host library  libvulkan.so.1  (for bin/b)
host needs    kernel_parameter amdgpu.x = 0
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
