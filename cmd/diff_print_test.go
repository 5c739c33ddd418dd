package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager"
)

func TestPrintDifference(t *testing.T) {
	yes, no := true, false
	value, other := "0", "1"
	file := func(size int64) *packager.File { return &packager.File{Type: packager.TypeFile, Size: size} }
	d := &packager.Difference{
		Fixes: []packager.FixChange{
			{ID: "e#1", Title: "one", Change: packager.FixGained, From: &no, To: &yes, How: "ancestor of the pin"},
			{ID: "e#2", Change: packager.FixUnclear, From: &yes},
			{ID: "e#3", Title: "three", Change: packager.FixLost, From: &yes, To: &no, How: "reverted by 1a2b3c4"},
			{ID: "e#4", Change: packager.FixLearned, To: &no, How: "not in the history of the pin"},
		},
		EntryPoints:  []packager.ValueChange{{Name: "a", To: "bin/a"}, {Name: "b", From: "bin/b"}, {Name: "c", From: "x", To: "y"}},
		FrontDoor:    []packager.ValueChange{{Name: "bench", To: "bench"}},
		GPUTargets:   []packager.ValueChange{{Name: "gfx942", From: "gfx942"}},
		Requirements: []packager.RequirementChange{{Kind: "device", Name: "/dev/kfd", To: new(string)}, {Kind: "kernel_parameter", Name: "a.b", From: &value, To: &other}, {Kind: "path", Name: "/opt", From: new(string)}},
		Libraries: []packager.LibraryChange{
			{Name: "liba.so", To: &packager.HostLibrary{NeededBy: "bin/a"}}, {Name: "libb.so", From: &packager.HostLibrary{}},
			{Name: "libc.so", From: &packager.HostLibrary{}, To: &packager.HostLibrary{Dirs: []string{"/opt/x", "/opt/y"}}},
		},
		Glibc:    &packager.ValueChange{Name: "glibc", From: "2.36"},
		FromSize: 3000, ToSize: 1000,
		Files: []packager.FileChange{{Path: "gone", From: file(2000)}, {Path: "new\x1b[2J", To: file(2048)}, {Path: "touched", From: file(9000), To: file(9000)}},
	}
	for i := range 10 {
		d.Files = append(d.Files, packager.FileChange{Path: fmt.Sprint("small", i), To: file(1)})
	}
	pin := movedPin{Component: "llama.cpp", From: "1111111111", To: "2222222222", Dropped: []commitDocument{{"3333333333", "went\x1b[2J", "2026-01-01T00:00:00Z"}}}
	for range 22 {
		pin.Commits = append(pin.Commits, commitDocument{"2222222222", "came", "2026-01-02T00:00:00Z"})
	}
	doc := diffDocument{
		From: diffSide{Package: "hrx-a"}, To: diffSide{Package: "hrx-b", Version: "2026.44.0"}, Difference: d, VersionChange: "newer",
		Pins: []movedPin{
			{Component: "engine", To: "4444444"}, {Component: "kernels", From: "5555555"}, pin,
			{Component: "x", From: "1", To: "1", Dirty: true, FromDirty: true, Commits: []commitDocument{}},
			{Component: "y", From: "2", To: "3", Dirty: true, ToDirty: true, Note: "no checkout"},
		},
	}
	var b strings.Builder
	if err := printDifference(&b, doc); err != nil {
		t.Fatal(err)
	}
	want := `hrx-a -> hrx-b 2026.44.0
version: newer
fix LOST: e#3 three (reverted by 1a2b3c4)
fix UNKNOWN now: e#2 (the new package says nothing of it)
fix gained: e#1 one (ancestor of the pin)
fix known now: NOT carried: e#4 (not in the history of the pin)
pin engine: new, at 4444444
pin kernels: gone, was at 5555555
pin llama.cpp: 111111111 -> 222222222, 22 commits, 1 commit DROPPED
` + strings.Repeat("  + 222222222 2026-01-02 came\n", 20) + `  + and 2 more: -o json lists them
  - 333333333 2026-01-01 went\x1b[2J
pin x: 1 (dirty) -> 1, the same commit with changes that no commit holds
pin y: 2 -> 3 (dirty) (no checkout)
files: 11 added, 1 removed, 1 changed; 2.9 KiB -> 1000 B (-2.0 KiB)
  ~ touched (same size)
  + new\x1b[2J (+2.0 KiB)
  - gone (-2.0 KiB)
` + "  + small0 (+1 B)\n  + small1 (+1 B)\n  + small2 (+1 B)\n  + small3 (+1 B)\n  + small4 (+1 B)\n  + small5 (+1 B)\n  + small6 (+1 B)\n" + `  and 3 smaller: -o json lists them
entry point a: new, bin/a
entry point b: gone
entry point c: x -> y
front door bench: new
GPU target gfx942: gone
host must have now: device /dev/kfd
host must have: kernel_parameter a.b = 1 instead of 0
host need no longer have: path /opt
host must have now: library liba.so, for bin/a
host need no longer have: library libb.so
library libc.so is looked for in /opt/x, /opt/y instead of the usual places
glibc: 2.36 -> none
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
