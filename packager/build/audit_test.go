package build

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testelf"
)

// What to do about a missing library is said once, whatever needs it.
func TestAuditSaysWhatToDo(t *testing.T) {
	e := &elfTree{t: t, dir: t.TempDir()}
	e.write(server, "#!/bin/sh\n", 0o755)
	for _, name := range []string{"hrx/bin/a.so", "hrx/bin/b.so"} {
		e.write(name, string(testelf.File{Needed: []string{"liblzma.so.5"}}.Bytes()), 0o644)
	}
	const declare = "requires: - library: liblzma.so.5 asks it of the host"
	for more, want := range map[string]string{
		"":    "\nin the recipe, fix_runpath: true brings in what the tree has; " + declare + ": package is not fit",
		fixed: "\nin the recipe, " + declare + "; fix_runpath did not find it in the tree: package is not fit",
	} {
		_, err := Build(context.Background(), options(t, e.dir, elfRecipe(more, server)))
		if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), declare) != 1 {
			t.Errorf("%q: got %v", more, err)
		}
	}
}

// What the audit found is in the manifest, and the machine in the name.
func TestAuditFillsManifest(t *testing.T) {
	e := newElfTree(t)
	e.program(server, "$ORIGIN:/opt/rocm-therock/lib")
	e.lib("hrx/bin/libhip.so", "libhip.so", "/opt/rocm-therock/lib", "libamdhip64.so.7")
	e.write("hrx/bin/kernels.co", string(testelf.File{Machine: 224, Flags: 0x4a}.Bytes()), 0o644)
	r := mustBuild(t, options(t, e.dir, elfRecipe(therock, server)))
	m := r.Manifest
	if m.Machine == "" || !strings.HasSuffix(r.Path, "-linux-"+m.Machine+".tar.zst") {
		t.Errorf("machine %q, path %s", m.Machine, r.Path)
	}
	if !regexp.MustCompile(`^2\.[0-9]+$`).MatchString(m.Glibc) {
		t.Errorf("glibc %q", m.Glibc)
	}
	if len(m.HostLibraries) != 1 || m.HostLibraries[0].Name != "libamdhip64.so.7" || !slices.Equal(m.HostLibraries[0].Dirs, []string{"/opt/rocm-therock/lib"}) {
		t.Errorf("host libraries %+v", m.HostLibraries)
	}
	if !slices.Equal(m.GPUTargets, []string{"gfx1151"}) {
		t.Errorf("GPU targets %v", m.GPUTargets)
	}

	// A package for another machine has that in its name, and is not run.
	foreign := newElfTree(t)
	foreign.write(server, string(testelf.File{Machine: 183, Interp: "/lib/ld-linux-aarch64.so.1"}.Bytes()), 0o755)
	o := options(t, foreign.dir, elfRecipe("", server))
	if m.Machine != "aarch64" {
		_, err := Build(context.Background(), o)
		if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "--no-run") || !strings.Contains(err.Error(), "aarch64") {
			t.Errorf("got %v", err)
		}
	}
	o.NoRun = true
	if r := mustBuild(t, o); filepath.Base(r.Path) != "1bit-hrx-3092596-linux-aarch64.tar.zst" || len(r.Trials) != 0 {
		t.Errorf("path %s, trials %v", r.Path, r.Trials)
	}
}
