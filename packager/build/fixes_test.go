package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"github.com/google/go-cmp/cmp"
)

const goodRegistry = `- id: engine#140
  title: decode-split race
  component: llama.cpp
  commits: [00adc2b]
  off: ONEBIT_HRX_DECODE_SPLIT=0
- id: engine#123
  title: the same, seen first
  component: llama.cpp
  commits: [1234567, 12345e7]
`

func TestParseFixRegistry(t *testing.T) {
	got, err := ParseFixRegistry("f.yaml", []byte(goodRegistry))
	if err != nil {
		t.Fatal(err)
	}
	want := []packager.Fix{
		{ID: "engine#123", Title: "the same, seen first", Component: "llama.cpp", Commits: []string{"1234567", "12345e7"}},
		{ID: "engine#140", Title: "decode-split race", Component: "llama.cpp", Commits: []string{"00adc2b"}, Off: "ONEBIT_HRX_DECODE_SPLIT=0"},
	}
	if diff := cmp.Diff(want, got.Fixes); diff != "" {
		t.Error(diff)
	}
}

func TestParseFixRegistryErrors(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(goodRegistry, old, new, 1) }
	for name, c := range map[string]struct{ registry, want string }{
		"empty":        {"", `f\.yaml: is empty`},
		"a mapping":    {"fixes: []\n", `f\.yaml:1: the registry: is a mapping: write it as a list`},
		"unknown key":  {replace("  off:", "  on:"), `f\.yaml:5: fix 1 \("engine#140"\)\.on: unknown key: remove it or use one of id, title, component, commits, off`},
		"no commits":   {replace("  commits: [00adc2b]\n", ""), `f\.yaml:1: fix 1 \("engine#140"\)\.commits: missing: add it`},
		"no title":     {replace("  title: decode-split race\n", ""), `f\.yaml:1: fix 1 \("engine#140"\)\.title: missing`},
		"empty list":   {replace("[00adc2b]", "[]"), `f\.yaml:1: fix 1 \("engine#140"\): fix engine#140 names no commit`},
		"a branch":     {replace("00adc2b", "main"), `f\.yaml:1: fix 1 \("engine#140"\): commit "main" of fix engine#140`},
		"commit twice": {replace("[1234567, 12345e7]", "[1234567, 1234567]"), `f\.yaml:9: fix 2 \("engine#123"\)\.commits: "1234567" is there twice`},
		"id twice":     {replace("engine#123", "engine#140"), `f\.yaml:6: engine#140: is there twice`},
		"bad off":      {replace("ONEBIT_HRX_DECODE_SPLIT=0", "nothing"), `f\.yaml:1: fix 1 \("engine#140"\): what turns fix engine#140 off`},
		"bad id":       {replace("engine#140", `"a b"`), `f\.yaml:1: fix 1 \("a b"\): fix "a b" is not named like`},
		"control":      {replace("decode-split race", `"a\e[31mb"`), `f\.yaml:1: fix 1 \("engine#140"\): text of fix`},
		"a word":       {"- x\n", `f\.yaml:1: fix 1: is a single value`},
		"too long":     {strings.Repeat("#", maxRecipe+1), `f\.yaml: more than`},
	} {
		got, err := ParseFixRegistry("f.yaml", []byte(c.registry))
		if !errors.Is(err, ErrRecipe) || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, %v, want %s", name, got, err, c.want)
		}
	}
}

func FuzzParseFixRegistry(f *testing.F) {
	f.Add([]byte(goodRegistry))
	f.Add([]byte("- &a [*a]\n"))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reg, err := ParseFixRegistry("f.yaml", b)
		if err != nil {
			if !errors.Is(err, ErrRecipe) {
				t.Fatalf("error without ErrRecipe: %v", err)
			}
			return
		}
		// What passes makes a manifest that is valid.
		m := packager.Manifest{Schema: packager.Schema, Flavour: "x", ID: "x", Fixes: reg.Fixes}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// fixScene is a checkout with a fix that stays, one that is reverted and one that is on another branch.
type fixScene struct {
	repo                   *gitRepo
	stays, gone, elsewhere string
	revert, head           string
}

func newFixScene(t *testing.T) *fixScene {
	s := &fixScene{repo: newGitRepo(t)}
	s.repo.commit("a", "1\n", "begin")
	s.repo.git("switch", "-q", "-c", "other")
	s.elsewhere = s.repo.commit("c", "1\n", "elsewhere")
	s.repo.git("switch", "-q", "main")
	s.stays = s.repo.commit("a", "2\n", "stays")
	s.gone = s.repo.commit("b", "1\n", "goes")
	s.repo.git("revert", "--no-edit", s.gone)
	s.revert = s.repo.git("rev-parse", "HEAD")
	s.head = s.repo.commit("d", "1\n", "more")
	return s
}

func (s *fixScene) options(t *testing.T, registry, more string) Options {
	t.Helper()
	o := options(t, makeTree(t), sourcesRecipe+"fixes: lists/fixes.yaml\n"+more)
	o.Sources = map[string]string{"llama.cpp": s.repo.dir}
	o.ID = "x"
	recipe := strings.Replace(string(read(t, o.RecipePath)), "  engine:\n", "  engine: {commit: 3092596}\n", 1)
	dir := filepath.Join(filepath.Dir(o.RecipePath), "lists")
	if err := errors.Join(os.WriteFile(o.RecipePath, []byte(recipe), 0o644), os.Mkdir(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "fixes.yaml"), []byte(registry), 0o644)); err != nil {
		t.Fatal(err)
	}
	return o
}

func registered(id, component string, commits ...string) string {
	return "- {id: \"" + id + "\", title: t, component: " + component + ", commits: [" + strings.Join(commits, ", ") + "]}\n"
}

func TestBuildFixes(t *testing.T) {
	s := newFixScene(t)
	yes, no := true, false
	missing := "ababababab"
	registry := registered("e#1", "llama.cpp", s.stays[:10]) + registered("e#2", "llama.cpp", s.gone) + registered("e#3", "llama.cpp", s.elsewhere) +
		registered("e#4", "engine", s.stays) + registered("e#5", "motor", s.stays) + registered("e#6", "llama.cpp", missing) +
		registered("e#7", "llama.cpp", s.stays, s.head) + registered("e#8", "llama.cpp", s.stays, missing, s.gone) + registered("e#9", "llama.cpp", s.stays, missing)
	o := s.options(t, registry, "require_fixes: [\"e#1\", \"e#7\"]\n")
	type answer struct {
		Carried *bool
		How     string
	}
	want := map[string]answer{
		"e#1": {&yes, "ancestor of the pin"},
		"e#2": {&no, "reverted by " + s.revert[:7]},
		"e#3": {&no, "not in the history of the pin"},
		"e#4": {nil, "no checkout of engine was given (--source engine=DIR)"},
		"e#5": {nil, "component motor is not part of this package"},
		"e#6": {nil, "ababababab is not in this checkout: fetch it"},
		"e#7": {&yes, s.stays[:7] + " ancestor of the pin; " + s.head[:7] + " the pin itself"},
		"e#8": {&no, s.gone[:7] + " reverted by " + s.revert[:7]},
		"e#9": {nil, "abababa ababababab is not in this checkout: fetch it"},
	}
	look := func(o Options) {
		t.Helper()
		got := map[string]answer{}
		r := mustBuild(t, o)
		for _, f := range r.Manifest.Fixes {
			got[f.ID] = answer{f.Carried, f.How}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		// The archive says the same.
		m, err := packager.ReadManifest(context.Background(), r.Path, packager.Limits{})
		if err != nil || !cmp.Equal(m.Fixes, r.Manifest.Fixes) {
			t.Errorf("the archive says %+v, %v", m, err)
		}
	}
	look(o)
	// A change that no commit holds spoils the fixes of its file, and no others.
	s.repo.write("a", "1\n")
	o.AllowDirty, o.ID = true, "y"
	o2 := s.options(t, registry, "")
	o2.AllowDirty = true
	want["e#1"] = answer{nil, `ancestor of the pin, but "a" has changes that no commit holds`}
	want["e#7"] = answer{nil, s.stays[:7] + ` ancestor of the pin, but "a" has changes that no commit holds`}
	want["e#9"] = answer{nil, s.stays[:7] + ` ancestor of the pin, but "a" has changes that no commit holds; abababa ababababab is not in this checkout: fetch it`}
	look(o2)
}

func TestBuildRequiresFixes(t *testing.T) {
	s := newFixScene(t)
	registry := registered("e#1", "llama.cpp", s.stays) + registered("e#2", "llama.cpp", s.gone) + registered("e#4", "engine", s.stays)
	for name, c := range map[string]struct {
		more string
		is   error
		want string
	}{
		"reverted": {"require_fixes: [\"e#1\", \"e#2\"]\n", ErrFixMissing, `recipe\.yaml:9: require_fixes: e#2 is not carried: reverted by ` + s.revert[:7]},
		"unknown":  {"require_fixes: [\"e#4\"]\n", ErrFixMissing, `require_fixes: whether e#4 is carried is unknown: no checkout of engine was given`},
		"both":     {"require_fixes: [\"e#2\", \"e#4\"]\n", ErrFixMissing, `e#2 is not carried: .*; whether e#4 is carried is unknown`},
		"no such":  {"require_fixes:\n  - \"e#1\"\n  - \"e#9\"\n", ErrRecipe, `recipe\.yaml:11: require_fixes e#9: .*fixes\.yaml has no such fix`},
	} {
		o := s.options(t, registry, c.more)
		_, err := Build(context.Background(), o)
		if !errors.Is(err, c.is) || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if _, err := os.Stat(o.Out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the output folder was made", name)
		}
	}
	o := s.options(t, registry, "")
	if err := os.Remove(filepath.Join(filepath.Dir(o.RecipePath), "lists", "fixes.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(context.Background(), o); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "recipe.yaml:8: fixes: ") {
		t.Errorf("no registry: %v", err)
	}
	o = options(t, makeTree(t), goodRecipe+"require_fixes: [a]\n")
	if _, err := Build(context.Background(), o); !errors.Is(err, ErrRecipe) || !strings.Contains(err.Error(), "require_fixes: needs a registry") {
		t.Errorf("without a registry: %v", err)
	}
}
