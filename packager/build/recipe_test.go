package build

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const goodRecipe = `# weekly
flavour: hrx
include:
  - 1bit
  - hrx
entry_points:
  1bit: 1bit
  llama-server: hrx/llama/bin/llama-server
front_door: [serve, bench]
components:
  llama.cpp:
    commit: 12345e7
  engine:
    commit: 3092596c1a
    url: https://example.org/engine.git
requires:
  - path: /opt/rocm-therock
  - kernel_parameter: amdgpu.cwsr_enable
    value: 0
  - library: libvulkan.so.1
`

func TestParseRecipe(t *testing.T) {
	got, err := ParseRecipe("r.yaml", []byte(goodRecipe))
	if err != nil {
		t.Fatal(err)
	}
	want := &Recipe{
		Flavour:     "hrx",
		Include:     []string{"1bit", "hrx"},
		EntryPoints: map[string]string{"1bit": "1bit", "llama-server": "hrx/llama/bin/llama-server"},
		FrontDoor:   []string{"serve", "bench"},
		Components: []packager.Component{
			{Name: "engine", Commit: "3092596c1a", URL: "https://example.org/engine.git", Declared: true},
			{Name: "llama.cpp", Commit: "12345e7", Declared: true}, // as typed, no number
		},
		Requires: []packager.Requirement{
			{Kind: packager.RequirePath, Name: "/opt/rocm-therock"},
			{Kind: packager.RequireKernelParameter, Name: "amdgpu.cwsr_enable", Value: "0"},
			{Kind: packager.RequireLibrary, Name: "libvulkan.so.1"},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Recipe{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseRecipeErrors(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(goodRecipe, old) {
			t.Fatalf("the recipe has no %q", old)
		}
		return strings.Replace(goodRecipe, old, new, 1)
	}
	for name, c := range map[string]struct{ recipe, want string }{
		"empty":               {"", `r\.yaml: is empty`},
		"only a comment":      {"# x\n", `r\.yaml: is empty`},
		"null":                {"~\n", `r\.yaml:1: the recipe: is nothing`},
		"no mapping":          {"- a\n", `r\.yaml:1: the recipe: is a list`},
		"no YAML":             {"a: b: c\n", `r\.yaml:1: is not YAML: mapping values`},
		"tab":                 {"a:\n\tb: c\n", `r\.yaml:2: is not YAML: `},
		"second document":     {goodRecipe + "---\nflavour: x\n", `r\.yaml:\d+: a second document`},
		"key missing":         {replace("flavour: hrx\n", ""), `r\.yaml:\d+: flavour: missing: add it`},
		"include missing":     {replace("include:\n  - 1bit\n  - hrx\n", ""), `include: missing`},
		"components missing":  {goodRecipe[:strings.Index(goodRecipe, "components")], `components: missing`},
		"unknown key":         {replace("front_door", "front_doors"), `r\.yaml:9: front_doors: unknown key: remove it or use one of flavour, `},
		"key twice":           {goodRecipe + "flavour: x\n", `r\.yaml:\d+: flavour: is there twice`},
		"flavour bad":         {replace("flavour: hrx", "flavour: HRX"), `r\.yaml:2: flavour: "HRX" is not`},
		"flavour empty":       {replace("flavour: hrx", "flavour:"), `r\.yaml:2: flavour: has no value`},
		"flavour a list":      {replace("flavour: hrx", "flavour: [a]"), `r\.yaml:2: flavour: is a list`},
		"include empty":       {replace("include:\n  - 1bit\n  - hrx\n", "include: []\n"), `r\.yaml:3: include: is empty`},
		"include a word":      {replace("include:\n  - 1bit\n  - hrx\n", "include: hrx\n"), `r\.yaml:3: include: is a single value`},
		"include twice":       {replace("  - hrx\n", "  - 1bit\n"), `r\.yaml:5: include: "1bit" is there twice`},
		"include outside":     {replace("  - hrx\n", "  - ../hrx\n"), `r\.yaml:5: include: path "\.\./hrx" is not clean`},
		"include absolute":    {replace("  - hrx\n", "  - /hrx\n"), `r\.yaml:5: include: path`},
		"entry point outside": {replace("  1bit: 1bit\n", "  1bit: ../1bit\n"), `r\.yaml:7: entry_points\.1bit: path`},
		"entry points a list": {replace("  1bit: 1bit\n  llama-server: hrx/llama/bin/llama-server\n", "  - 1bit\n"), `r\.yaml:7: entry_points: is a list`},
		"verbs without front": {replace("  1bit: 1bit\n", ""), `r\.yaml:8: front_door: the verbs need an entry point 1bit`},
		"fixes a list":        {goodRecipe + "fixes: [a]\n", `r\.yaml:\d+: fixes: is a list`},
		"fix required twice":  {goodRecipe + "require_fixes: [a, a]\n", `r\.yaml:\d+: require_fixes: "a" is there twice`},
		"commit a branch":     {replace("12345e7", "main"), `r\.yaml:11: components\.llama\.cpp: commit "main"`},
		"component key":       {replace("    url: ", "    site: "), `r\.yaml:15: components\.engine\.site: unknown key`},
		"alias":               {replace("    commit: 12345e7", "    commit: *x"), `r\.yaml:12: is not YAML: unknown anchor`},
		"known alias":         {strings.Replace(replace("flavour: hrx", "flavour: &x hrx"), "12345e7", "*x", 1), `components\.llama\.cpp\.commit: is an alias`},
		"merge":               {replace("    commit: 12345e7", "    <<: {commit: 12345e7}"), `components\.llama\.cpp: has a merge`},
		"two requirements":    {replace("  - path: /opt/rocm-therock\n", "  - path: /opt\n    device: /dev/kfd\n"), `r\.yaml:17: requires\[0\]: has both path and device`},
		"requirement bad":     {replace("/opt/rocm-therock", "opt"), `r\.yaml:17: requires\[0\]: path "opt"`},
		"library by a path":   {replace("library: libvulkan", "library: /usr/lib/libvulkan"), `r\.yaml:20: requires\[2\]: library "/usr/lib/libvulkan.so.1" is not a name`},
		"requirement unknown": {replace("  - path:", "  - paths:"), `r\.yaml:17: requires\[0\]\.paths: unknown key`},
		"parameter, no value": {replace("    value: 0\n", ""), `r\.yaml:18: requires\[1\]: kernel parameter amdgpu\.cwsr_enable has no value`},
		"flag a word":         {goodRecipe + "fix_runpath: yes\n", `r\.yaml:\d+: fix_runpath: is "yes": write true or false`},
		"library, no name":    {goodRecipe + "  - library: /usr/lib/libx.so\n", `library "/usr/lib/libx\.so" is not a name`},
		"too long":            {strings.Repeat("#", maxRecipe+1), `r\.yaml: more than`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRecipe("r.yaml", []byte(c.recipe))
			if !errors.Is(err, ErrRecipe) {
				t.Fatalf("got %v, %v", r, err)
			}
			if !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("got %q, want it to match %q", err, c.want)
			}
		})
	}
}

func TestParseRecipeFixRunpath(t *testing.T) {
	for text, want := range map[string]bool{"": false, "fix_runpath: true\n": true, "fix_runpath: false\n": false} {
		r, err := ParseRecipe("r.yaml", []byte(goodRecipe+text))
		if err != nil || r.FixRunpath != want {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
}

func FuzzParseRecipe(f *testing.F) {
	f.Add([]byte(goodRecipe))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRecipe("r.yaml", b)
		if err != nil {
			if !errors.Is(err, ErrRecipe) {
				t.Fatalf("error without ErrRecipe: %v", err)
			}
			return
		}
		for i := range r.Components {
			if r.Components[i].Commit == "" {
				r.Components[i].Commit = noCommit
			}
		}
		// What passes makes a manifest that is valid but for its files.
		m := packager.Manifest{Schema: packager.Schema, Flavour: r.Flavour, ID: "x", Components: r.Components, Requires: r.Requires}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
