package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testelf"
)

const (
	server    = "hrx/bin/server"
	fixed     = "fix_runpath: true"
	therock   = "requires: [{path: /opt/rocm-therock}]"
	fixedRock = fixed + "\n" + therock
)

// What every file's RUNPATH becomes. The build itself starts the server out of
// the unpacked package, so the real loader agrees with every case.
func TestFixRunpath(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(e *elfTree)
		tree    func(e *elfTree) string // nil: the tree's own path
		further string                  // of the recipe
		want    map[string]string       // RUNPATH by file
		same    []string                // files that are as in the tree
	}{
		"absolute, into the tree": {
			make: func(e *elfTree) {
				e.lib("out/lib/libx.so.1", "libx.so.1", "")
				e.program(server, e.path("out/lib"), "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/bin/libx.so.1": ""},
		},
		"by a link to the tree": {
			make: func(e *elfTree) {
				link := filepath.Join(e.t.TempDir(), "link")
				must(0, os.Symlink(e.dir, link))
				e.lib("out/lib/libx.so.1", "libx.so.1", "")
				e.program(server, link+"/out/lib", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/bin/libx.so.1": ""},
		},
		"of a tree that was given by a link": {
			make: func(e *elfTree) {
				must(0, os.Symlink(e.dir, e.dir+"-link"))
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.program(server, e.path("hrx/lib"), "libx.so.1")
			},
			tree: func(e *elfTree) string { return e.dir + "-link" },
			want: map[string]string{server: "$ORIGIN/../lib", "hrx/lib/libx.so.1": ""},
			same: []string{"hrx/lib/libx.so.1"},
		},
		"the tree was elsewhere when it was built": {
			make: func(e *elfTree) {
				e.lib("out/libx.so.1", "libx.so.1", "")
				e.program(server, "/home/ci/engine/out", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/bin/libx.so.1": ""},
		},
		"into a home, with the library in the package": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.program(server, "/home/ci/lib:/root/lib", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN/../lib"},
		},
		"an empty entry": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.program(server, ":$ORIGIN/../lib", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN/../lib"},
		},
		"nothing is needed by the entry": {
			make: func(e *elfTree) { e.program(server, e.path("out/lib")) },
			want: map[string]string{server: ""},
		},
		"as it should be": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "${ORIGIN}", "liby.so.1")
				e.lib("hrx/lib/liby.so.1", "liby.so.1", "")
				e.program(server, "$ORIGIN/../lib:/opt/rocm-therock/lib", "libx.so.1")
			},
			further: fixedRock,
			want:    map[string]string{server: "$ORIGIN/../lib:/opt/rocm-therock/lib"},
			same:    []string{server, "hrx/lib/libx.so.1", "hrx/lib/liby.so.1"},
		},
		"a folder of the host stays, after the package's own": {
			make: func(e *elfTree) {
				e.lib("out/lib/libx.so.1", "libx.so.1", "")
				e.lib("hrx/lib/liby.so.1", "liby.so.1", "")
				e.program(server, e.path("out/lib")+":/opt/rocm-therock/lib:/opt/other", "libx.so.1", "liby.so.1")
			},
			further: fixedRock,
			want:    map[string]string{server: "$ORIGIN:$ORIGIN/../lib:/opt/rocm-therock/lib"},
		},
		"a plugin that nobody needs": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libbase.so.0", "libbase.so.0", "")
				e.lib("hrx/lib/backends/libplugin.so", "libplugin.so", "", "libbase.so.0")
				e.program(server, "$ORIGIN/../lib", "libbase.so.0")
			},
			want: map[string]string{"hrx/lib/backends/libplugin.so": "$ORIGIN/.."},
			same: []string{server, "hrx/lib/libbase.so.0"},
		},
		"versioned links in the tree": {
			make: func(e *elfTree) {
				e.lib("out/lib/libx.so.1.2.3", "libx.so.1", "")
				e.link("libx.so.1.2.3", "out/lib/libx.so.1")
				e.link(e.path("out/lib/libx.so.1"), "out/lib/libx.so")
				e.program(server, e.path("out/lib"), "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/bin/libx.so.1": ""},
		},
		"versioned links in the package": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1.2.3", "libx.so.1", "")
				e.link("libx.so.1.2.3", "hrx/lib/libx.so.1")
				e.program(server, "", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN/../lib"},
		},
		"a library found by a link in another folder": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "", "liby.so.1")
				e.lib("hrx/lib/liby.so.1", "liby.so.1", "")
				e.link("../lib/libx.so.1", "hrx/bin/libx.so.1")
				e.program(server, "$ORIGIN", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/lib/libx.so.1": "$ORIGIN:$ORIGIN/../lib"},
			same: []string{server},
		},
		"what is brought in needs more": {
			make: func(e *elfTree) {
				e.lib("out/lib/libx.so.1", "libx.so.1", "$ORIGIN/../deps", "liby.so.1")
				e.lib("out/deps/liby.so.1", "liby.so.1", e.path("out/lib"), "libx.so.1")
				e.program(server, e.path("out/lib"), "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/bin/libx.so.1": "$ORIGIN", "hrx/bin/liby.so.1": "$ORIGIN"},
		},
		"two programs, two files of one soname": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "")
				e.lib("b/libx.so.1", "libx.so.1", "", "libm.so.6")
				e.program(server, e.path("a"), "libx.so.1")
				e.program("hrx/vulkan/server", e.path("b"), "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/vulkan/server": "$ORIGIN", "hrx/bin/libx.so.1": "", "hrx/vulkan/libx.so.1": ""},
		},
		"two programs, one file": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "")
				e.program(server, e.path("a"), "libx.so.1")
				e.program("hrx/vulkan/server", e.path("a"), "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN", "hrx/vulkan/server": "$ORIGIN/../bin", "hrx/vulkan/libx.so.1": "no ELF file"},
		},
		"the nearest of two": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.lib("hrx/vulkan/deep/lib/libx.so.1", "libx.so.1", "", "libm.so.6")
				e.program(server, "", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN/../lib"},
		},
		"RPATH": {
			make: func(e *elfTree) {
				e.lib("out/lib/libx.so.1", "libx.so.1", "")
				e.make(e.patchelf, server, 0o755, "--add-needed", "libx.so.1", "--force-rpath", "--set-rpath", e.path("out/lib"))
			},
			want: map[string]string{server: "$ORIGIN"},
		},
		"a static program, a script and firmware": {
			make: func(e *elfTree) {
				e.program(server, "$ORIGIN")
				e.write("hrx/bin/static", string(testelf.File{Type: 2, Static: true}.Bytes()), 0o755)
				e.write("hrx/bin/script", "#!/bin/sh\n", 0o755)
				e.write("hrx/bin/empty", "", 0o644)
			},
			want: map[string]string{server: "$ORIGIN"},
			same: []string{server, "hrx/bin/static", "hrx/bin/script", "hrx/bin/empty"},
		},
		"two names of one file": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.program(server, "", "libx.so.1")
				e.write("hrx/server/place", "", 0o644)
				must(0, os.Link(e.path(server), e.path("hrx/server/server")))
				e.link("../bin/server", "hrx/server/link")
			},
			want: map[string]string{server: "$ORIGIN/../lib", "hrx/server/server": "$ORIGIN/../lib"},
		},
		"the same file twice in the tree": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "")
				e.lib("b/libx.so.1", "libx.so.1", "")
				e.program(server, "", "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN"},
		},
		"the same file is there already": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "")
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.program(server, e.path("a"), "libx.so.1")
			},
			want: map[string]string{server: "$ORIGIN/../lib", "hrx/bin/libx.so.1": "no ELF file"},
			same: []string{"hrx/lib/libx.so.1"},
		},
		"a stub in the tree of what the host has": {
			make: func(e *elfTree) {
				e.lib("stubs/libhip.so.7", "libhip.so.7", "")
				e.lib("hrx/bin/libplugin.so", "libplugin.so", "/opt/rocm-therock/lib", "libhip.so.7")
				e.program(server, "")
			},
			further: fixedRock,
			want:    map[string]string{"hrx/bin/libplugin.so": "/opt/rocm-therock/lib", "hrx/bin/libhip.so.7": "no ELF file"},
			same:    []string{"hrx/bin/libplugin.so"},
		},
		"a folder of the host and one of the tree as it was elsewhere": {
			make: func(e *elfTree) {
				e.lib("out/libx.so.1", "libx.so.1", "")
				e.program(server, "/home/ci/engine/out:/opt/rocm-therock/lib", "libx.so.1")
			},
			further: fixedRock,
			want:    map[string]string{server: "$ORIGIN:/opt/rocm-therock/lib"},
		},
		"a library of the host's by name that the package has": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "")
				e.program(server, "", "libx.so.1")
			},
			further: fixed + "\nrequires: [{library: libx.so.1}]",
			want:    map[string]string{server: "$ORIGIN/../lib"},
		},
		"a library of the host's by name": {
			make: func(e *elfTree) {
				e.lib("out/libx.so.1", "libx.so.1", "")
				e.lib("hrx/lib/libplugin.so", "libplugin.so", e.path("out"), "libx.so.1")
				e.program(server, "")
			},
			further: fixed + "\nrequires: [{library: libx.so.1}]",
			want:    map[string]string{"hrx/lib/libplugin.so": "", "hrx/lib/libx.so.1": "no ELF file"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newElfTree(t)
			c.make(e)
			if c.further == "" {
				c.further = fixed
			}
			o := options(t, e.dir, elfRecipe(c.further, server))
			if c.tree != nil {
				o.Tree = c.tree(e)
			}
			before := e.snapshot()
			b := mustUnpack(t, mustBuild(t, o))
			if e.snapshot() != before {
				t.Error("the tree was changed")
			}
			for file, want := range c.want {
				if got := b.runpath(file); got != want {
					t.Errorf("%s has RUNPATH %q, want %q", file, got, want)
				}
			}
			for _, file := range c.same {
				if !b.same(t, e, file) {
					t.Errorf("%s is not as in the tree", file)
				}
			}
			if len(b.Trials) != 1 || !b.Trials[0].Answered || !strings.HasPrefix(b.Trials[0].Version, "patchelf ") {
				t.Errorf("trials %+v", b.Trials)
			}
			if f := b.Manifest.Lookup("hrx/bin/libx.so.1"); f != nil && f.Type == "file" && f.Mode != 0o644 {
				t.Errorf("a library has mode %o", f.Mode)
			}
			again := o
			again.Out += "-again"
			if other := mustBuild(t, again); other.SHA256 != b.SHA256 {
				t.Error("a second build gives other bytes")
			}
			for _, out := range []string{o.Out, again.Out} {
				if entries := must(os.ReadDir(out)); len(entries) != 1 {
					t.Errorf("the output folder holds %v", entries)
				}
			}
		})
	}
}

func TestFixRunpathRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(e *elfTree)
		further string
		is      error
		want    []string // each is in the error
	}{
		"two files of one soname beside each other": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "")
				e.lib("b/libx.so.1", "libx.so.1", "", "libm.so.6")
				e.program(server, e.path("a"), "libx.so.1")
				e.program("hrx/bin/tool", e.path("b"), "libx.so.1")
			},
			is: ErrRecipe, want: []string{`hrx/bin/tool needs b/libx\.so\.1 of the tree as hrx/bin/libx\.so\.1, where another file is: a/libx\.so\.1 \(for hrx/bin/server\)`},
		},
		"another is there already": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "", "libm.so.6")
				e.lib("hrx/bin/libx.so.1", "libx.so.1", "")
				e.program(server, e.path("a")+":$ORIGIN", "libx.so.1")
			},
			is: ErrRecipe, want: []string{`hrx/bin/server needs a/libx\.so\.1 of the tree as hrx/bin/libx\.so\.1, where another file is: hrx/bin/libx\.so\.1`},
		},
		"more than one in the tree": {
			make: func(e *elfTree) {
				e.lib("a/libx.so.1", "libx.so.1", "")
				e.lib("b/libx.so.1", "libx.so.1", "", "libm.so.6")
				e.program(server, "", "libx.so.1")
			},
			is: ErrRecipe, want: []string{`needs libx\.so\.1, which the tree has more than once: a/libx\.so\.1, b/libx\.so\.1`, `library: libx\.so\.1`},
		},
		"as near as another": {
			make: func(e *elfTree) {
				e.lib("hrx/a/libx.so.1", "libx.so.1", "")
				e.lib("hrx/b/libx.so.1", "libx.so.1", "", "libm.so.6")
				e.program(server, "", "libx.so.1")
			},
			is: ErrRecipe, want: []string{`which is in both hrx/a and hrx/b`},
		},
		"missing, twice": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", "", "libnowhere.so.2")
				e.program(server, "", "libx.so.1", "libnothing.so.3")
			},
			is: ErrUnfit, want: []string{`hrx/bin/server needs libnothing\.so\.3`, `hrx/lib/libx\.so\.1 needs libnowhere\.so\.2`},
		},
		"of another machine": {
			make: func(e *elfTree) {
				e.program(server, "")
				e.write("hrx/bin/tool", string(testelf.File{Machine: 243, Interp: "/lib/ld-linux-riscv64-lp64d.so.1"}.Bytes()), 0o755)
			},
			is: ErrUnfit, want: []string{`make a package for each machine`},
		},
		"without fix_runpath": {
			make: func(e *elfTree) {
				e.lib("hrx/lib/libx.so.1", "libx.so.1", e.path("out"))
				e.program(server, "/home/ci/lib", "libx.so.1")
			},
			further: therock, is: ErrUnfit,
			want: []string{`hrx/bin/server needs libx\.so\.1`, `hrx/bin/server its RUNPATH has the entry "/home/ci/lib"`, `hrx/lib/libx\.so\.1 its RUNPATH has the entry`, `fix_runpath: true`},
		},
		"damaged": {
			make: func(e *elfTree) {
				e.program(server, "")
				e.write("hrx/bin/tool", "\x7fELF\x02\x01\x01", 0o755)
			},
			is: ErrUnfit, want: []string{`hrx/bin/tool is a damaged ELF file`},
		},
		"scripts and paths of the tree": {
			make: func(e *elfTree) {
				e.program(server, "")
				e.write("hrx/bin/tool", "#!"+e.dir+"/sh\necho version 1\n", 0o755)
				e.write("hrx/lib/module", "#!"+e.dir+"/sh\n", 0o644) // that nobody starts
				e.write("hrx/lib/libx.so", string(testelf.File{Needed: []string{e.dir + "/ld-musl-x.so"}}.Bytes()), 0o644)
				whole := testelf.File{Sections: []testelf.Section{{Name: ".data", Data: make([]byte, 9000)}}}.Bytes()
				e.write("hrx/lib/liby.so", string(whole[:5000]), 0o644)
			},
			is: ErrUnfit, want: []string{
				`linked with\nhrx/bin/tool is started by "/.*/sh", which is in a folder of the machine that built it`,
				`\nhrx/lib/libx\.so needs "/.*/ld-musl-x\.so", by a path`, `\nhrx/lib/liby\.so is cut off: it has 5000 bytes`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newElfTree(t)
			c.make(e)
			if c.further == "" {
				c.further = fixed
			}
			o := options(t, e.dir, elfRecipe(c.further, server))
			_, err := Build(context.Background(), o)
			if !errors.Is(err, c.is) {
				t.Fatalf("got %v, want %v", err, c.is)
			}
			for _, want := range c.want {
				if !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("got %q, want it to match %q", err, want)
				}
			}
			if _, err := os.Lstat(o.Out); err == nil {
				t.Error("the output folder was made")
			}
		})
	}
}

// patchelf is asked for when it is needed, and only then.
func TestFixRunpathWithoutPatchelf(t *testing.T) {
	e := newElfTree(t)
	e.program(server, "$ORIGIN")
	t.Setenv("PATH", t.TempDir())
	mustBuild(t, options(t, e.dir, elfRecipe(fixed, server)))

	t.Setenv("PATH", filepath.Dir(e.patchelf))
	e.program("hrx/bin/tool", "/home/ci/lib")
	t.Setenv("PATH", t.TempDir())
	o := options(t, e.dir, elfRecipe(fixed, server))
	_, err := Build(context.Background(), o)
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "install the package patchelf") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(o.Out); err == nil {
		t.Error("the output folder was made")
	}
}
