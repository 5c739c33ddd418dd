package cmd_test

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
)

// removals are the commands that take packages away, each from a store of two.
var removals = map[string][]string{
	"remove": {"pkg", "remove", "hrx-aaaaaaa"},
	"gc":     {"pkg", "gc", "--keep", "1", "--keep-days", "0"},
}

// newRemovalSite has two packages installed, the second one later.
func newRemovalSite(t *testing.T, program string, archives []string) installSite {
	t.Helper()
	site := newInstallSite(t, program)
	for _, archive := range archives {
		mustRun(t, program, site.args("pkg", "install", archive)...)
	}
	return site
}

// The new state of the store is safe before a removal says so.
func TestRemoveIsDurable(t *testing.T) {
	tools := requireTools(t)
	archives := buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa", "bbbbbbb")
	for name, args := range removals {
		t.Run(name, func(t *testing.T) {
			site := newRemovalSite(t, tools.program, archives)
			r := site.disturbed(tools.faultrun, nil, args...)
			if r.Exit != 0 {
				t.Fatalf("it ended with %d", r.Exit)
			}
			wantEverySyncNeeded(t, r.Calls, []string{site.home}, site.home+"/data/.1bit-staging")
		})
	}
}

// Whatever happens at whichever point of a removal: the package is listed and whole, or gone, the other one is
// untouched, and the next command finishes or cleans up.
func TestRemoveDisturbedAtEveryPoint(t *testing.T) {
	tools := requireTools(t)
	archives := buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa", "bbbbbbb")
	for name, args := range removals {
		for _, d := range disturbances {
			t.Run(name+" "+d.name, func(t *testing.T) {
				t.Parallel()
				points := 0
				for at := 1; ; at++ {
					site := newRemovalSite(t, tools.program, archives)
					r := site.disturbed(tools.faultrun, append([]string{"-at", strconv.Itoa(at)}, d.args...), args...)
					if at > len(r.Calls) {
						if r.Exit != 0 {
							t.Errorf("an undisturbed run ended with %d", r.Exit)
						}
						break
					}
					points++
					where := strconv.Itoa(at) + " (" + r.Calls[at-1].String() + ")"
					packages := site.packages()
					if packages["hrx-bbbbbbb"] != "ok" {
						t.Errorf("disturbed at %s: the other package is %q", where, packages["hrx-bbbbbbb"])
					}
					state, listed := packages["hrx-aaaaaaa"]
					if listed && state != "ok" {
						t.Errorf("disturbed at %s: list shows it as %s", where, state)
					}
					if r.Exit == 0 && listed {
						t.Errorf("disturbed at %s: exit 0 and still there", where)
					}
					if left := site.staged(); len(left) != 0 {
						t.Errorf("disturbed at %s: staging still holds %v", where, left)
					}
					if listed {
						mustRun(t, tools.program, site.args("pkg", "verify", "hrx-aaaaaaa")...)
						mustRun(t, tools.program, site.args(args...)...)
					}
					if packages := site.packages(); len(packages) != 1 {
						t.Errorf("disturbed at %s: the next one leaves %v", where, packages)
					}
					mustRun(t, tools.program, site.args("pkg", "install", archives[0])...)
					mustRun(t, "chmod", "-R", "u+w", site.home)
					if err := os.RemoveAll(site.home); err != nil {
						t.Fatal(err)
					}
				}
				if points < 8 {
					t.Errorf("only %d points: the run was not seen whole", points)
				}
				t.Logf("%d points", points)
			})
		}
	}
}

// gc says of each package what became of it, and why.
func TestGCDocument(t *testing.T) {
	tools := requireTools(t)
	site := newRemovalSite(t, tools.program, buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa", "bbbbbbb"))
	var doc struct {
		Packages []struct {
			Name, ID, Digest, Path, Action string
			Size                           int64
			Reasons                        []string
		}
		Freed  int64
		DryRun bool `json:"dry_run"`
	}
	out := mustRun(t, tools.program, site.args("-o", "json", "pkg", "gc", "--keep", "1", "--keep-days", "0", "--dry-run")...)
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Packages) != 2 || !doc.DryRun || doc.Freed != doc.Packages[0].Size || doc.Freed == 0 {
		t.Fatalf("got %s", out)
	}
	a, b := doc.Packages[0], doc.Packages[1]
	if a.Name != "hrx-aaaaaaa" || a.ID != "aaaaaaa" || a.Action != "would_remove" || len(a.Reasons) != 0 || a.Path == "" || a.Digest == "" {
		t.Errorf("first: %+v", a)
	}
	if b.Action != "kept" || len(b.Reasons) != 1 || b.Reasons[0] != "the last of flavour hrx" {
		t.Errorf("second: %+v", b)
	}
}
