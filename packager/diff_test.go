package packager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCompare(t *testing.T) {
	yes, no := true, false
	digest := func(c string) string { return strings.Repeat(c, 64) }
	text := func(s string) *string { return &s }
	base := func() *Manifest {
		return &Manifest{
			Components:  []Component{{Name: "engine", Commit: "1111111aa"}, {Name: "llama.cpp", Commit: "2222222"}},
			EntryPoints: map[string]string{"1bit": "1bit", "llama-server": "bin/llama-server"}, FrontDoor: []string{"serve"},
			Requires: []Requirement{{Kind: RequirePath, Name: "/opt/rocm"}, {Kind: RequireKernelParameter, Name: "amdgpu.x", Value: "0"}},
			Fixes:    []Fix{{ID: "e#1", Title: "one", Carried: &yes, How: "h"}, {ID: "e#2", Title: "two", Carried: &no, How: "h"}, {ID: "e#3", How: "h"}},
			Machine:  "x86_64", Glibc: "2.38", GPUTargets: []string{"gfx1151"},
			HostLibraries: []HostLibrary{{Name: "liba.so.1", NeededBy: "1bit"}},
			Files: []File{
				{Path: "1bit", Type: TypeFile, Mode: 0o755, Size: 10, SHA256: digest("a")},
				{Path: "bin", Type: TypeDir, Mode: 0o755},
				{Path: "bin/x", Type: TypeLink, Target: "y"},
				{Path: "bin/y", Type: TypeFile, Mode: 0o644, Size: 5, SHA256: digest("b")},
			},
		}
	}
	a := base()
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   Difference
	}{
		"nothing": {func(m *Manifest) {}, Difference{}},
		"pin moved": {func(m *Manifest) { m.Components[0].Commit = "3333333" },
			Difference{Pins: []PinChange{{Component: "engine", From: "1111111aa", To: "3333333"}}}},
		"pin longer": {func(m *Manifest) { m.Components[0].Commit = "1111111aabb" }, Difference{}},
		"pin dirty": {func(m *Manifest) { m.Components[0].Dirty = true },
			Difference{Pins: []PinChange{{Component: "engine", From: "1111111aa", To: "1111111aa", Dirty: true, ToDirty: true}}}},
		"pin added and gone": {func(m *Manifest) { m.Components[1] = Component{Name: "kernels", Commit: "4444444"} },
			Difference{Pins: []PinChange{{Component: "kernels", To: "4444444"}, {Component: "llama.cpp", From: "2222222"}}}},
		"fix gained": {func(m *Manifest) { m.Fixes[1].Carried, m.Fixes[1].How = &yes, "ancestor" },
			Difference{Fixes: []FixChange{{ID: "e#2", Title: "two", Change: FixGained, From: &no, To: &yes, How: "ancestor"}}}},
		"fix lost": {func(m *Manifest) { m.Fixes[0].Carried, m.Fixes[0].How = &no, "reverted" },
			Difference{Fixes: []FixChange{{ID: "e#1", Title: "one", Change: FixLost, From: &yes, To: &no, How: "reverted"}}}},
		"fix unclear": {func(m *Manifest) { m.Fixes[0].Carried, m.Fixes[0].How = nil, "shallow" },
			Difference{Fixes: []FixChange{{ID: "e#1", Title: "one", Change: FixUnclear, From: &yes, How: "shallow"}}}},
		"fix learned": {func(m *Manifest) { m.Fixes[2].Carried = &no },
			Difference{Fixes: []FixChange{{ID: "e#3", Change: FixLearned, To: &no, How: "h"}}}},
		"no registry": {func(m *Manifest) { m.Fixes = nil },
			Difference{Fixes: []FixChange{{ID: "e#1", Title: "one", Change: FixUnclear, From: &yes}, {ID: "e#2", Title: "two", Change: FixUnclear, From: &no}}}},
		"file changed": {func(m *Manifest) { m.Files[0].Size, m.Files[0].SHA256 = 20, digest("c") },
			Difference{ToSize: 25, Files: []FileChange{{"1bit", &a.Files[0], &File{Path: "1bit", Type: TypeFile, Mode: 0o755, Size: 20, SHA256: digest("c")}}}}},
		"file executable": {func(m *Manifest) { m.Files[3].Mode = 0o755 },
			Difference{Files: []FileChange{{"bin/y", &a.Files[3], &File{Path: "bin/y", Type: TypeFile, Mode: 0o755, Size: 5, SHA256: digest("b")}}}}},
		"mode of an imported file": {func(m *Manifest) { m.Files[3].Mode = 0o444 }, Difference{}},
		"link elsewhere": {func(m *Manifest) { m.Files[2].Target = "z" },
			Difference{Files: []FileChange{{"bin/x", &a.Files[2], &File{Path: "bin/x", Type: TypeLink, Target: "z"}}}}},
		"folder gone, file instead": {func(m *Manifest) {
			m.Files = []File{m.Files[0], {Path: "bin", Type: TypeFile, Mode: 0o644, Size: 1, SHA256: digest("d")}}
		}, Difference{ToSize: 11, Files: []FileChange{
			{"bin", nil, &File{Path: "bin", Type: TypeFile, Mode: 0o644, Size: 1, SHA256: digest("d")}},
			{"bin/x", &a.Files[2], nil}, {"bin/y", &a.Files[3], nil},
		}}},
		"entry point": {func(m *Manifest) { m.EntryPoints["1bit"] = "bin/1bit"; delete(m.EntryPoints, "llama-server") },
			Difference{EntryPoints: []ValueChange{{"1bit", "1bit", "bin/1bit"}, {"llama-server", "bin/llama-server", ""}}}},
		"verbs": {func(m *Manifest) { m.FrontDoor = []string{"bench"} },
			Difference{FrontDoor: []ValueChange{{"bench", "", "bench"}, {"serve", "serve", ""}}}},
		"GPU target": {func(m *Manifest) { m.GPUTargets = append(m.GPUTargets, "gfx942") },
			Difference{GPUTargets: []ValueChange{{"gfx942", "", "gfx942"}}}},
		"requirement": {func(m *Manifest) {
			m.Requires = []Requirement{{Kind: RequireKernelParameter, Name: "amdgpu.x", Value: "1"}, {Kind: RequireDevice, Name: "/dev/kfd"}}
		}, Difference{Requirements: []RequirementChange{
			{RequireDevice, "/dev/kfd", nil, text("")}, {RequireKernelParameter, "amdgpu.x", text("0"), text("1")}, {RequirePath, "/opt/rocm", text(""), nil},
		}}},
		"library": {func(m *Manifest) { m.HostLibraries = []HostLibrary{{Name: "libb.so.1", NeededBy: "1bit"}} },
			Difference{Libraries: []LibraryChange{{"liba.so.1", &a.HostLibraries[0], nil}, {"libb.so.1", nil, &HostLibrary{Name: "libb.so.1", NeededBy: "1bit"}}}}},
		"library needed by another": {func(m *Manifest) { m.HostLibraries[0].NeededBy = "bin/y" }, Difference{}},
		"machine and C library": {func(m *Manifest) { m.Machine, m.Glibc = "aarch64", "2.39" },
			Difference{Machine: &ValueChange{"machine", "x86_64", "aarch64"}, Glibc: &ValueChange{"glibc", "2.38", "2.39"}}},
	} {
		b := base()
		c.change(b)
		got := Compare(a, b)
		if got.Same() != (name == "nothing" || c.want.isZero()) {
			t.Errorf("%s: Same is %v", name, got.Same())
		}
		c.want.FromSize = 15
		if c.want.ToSize == 0 {
			c.want.ToSize = b.Size()
		}
		if diff := cmp.Diff(&c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func (d Difference) isZero() bool { return cmp.Equal(d, Difference{}) }
