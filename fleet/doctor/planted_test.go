package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet/doctor"
)

// plant is one problem: how it is made, and what the doctor must say of it.
type plant struct {
	name  string                       // of the test
	check string                       // the one check that finds it
	where string                       // part of the finding's place
	what  string                       // part of what the finding says
	also  []string                     // checks that rightly find the same problem from their side
	plant func(g *garden, q *question) // makes it, by what g undoes; q is what the doctor is asked, as for the clean host
	root  bool                         // root asks
	cure  bool                         // what the finding says to type in helps
}

// TestPlanted plants one problem after the other on a clean host, on which the doctor finds nothing. Each is found by its
// check and by no other, and when it is put back nothing is found again.
func TestPlanted(t *testing.T) {
	plants := slices.Concat(hostPlants(), servicePlants())
	if len(plants) < 40 {
		t.Errorf("there are %d planted problems, want 40", len(plants))
	}
	known := map[string]bool{}
	for _, c := range doctor.Checks() {
		known[c.Name] = true
	}
	g := newGarden(t)
	clean := question{Do: "doctor"}
	for _, a := range []*asker{g.user, g.root} {
		if r := a.ask(t, clean); len(r.Findings) > 0 {
			t.Fatalf("on the clean host %s is told\n%s", a.account, show(r.Findings))
		} else {
			t.Logf("on the clean host %s is told %s", a.account, show(r.Checks))
		}
	}
	for _, p := range plants {
		dirty := false
		t.Run(p.name, func(t *testing.T) {
			dirty = true
			if !known[p.check] {
				t.Fatalf("there is no check %q", p.check)
			}
			g, q := g.in(t), clean
			a := g.user
			if p.root {
				a = g.root
			}
			func() {
				defer g.clear()
				p.plant(g, &q)
				r := a.ask(t, q)
				var found []string
				for _, f := range r.Findings {
					if f.Check == p.check {
						found = append(found, f.Where+"\t"+f.What)
					} else if !slices.Contains(p.also, f.Check) {
						t.Errorf("%s finds it too: %s", f.Check, show(f))
					}
					if f.Remedy == "" || f.Reason == "" || f.What == "" {
						t.Errorf("the finding is not whole: %s", show(f))
					}
				}
				if p.cure {
					defer func() { g.cure(t, a, q, p.check, r.Findings) }()
				}
				if !slices.ContainsFunc(found, func(one string) bool {
					where, what, _ := strings.Cut(one, "\t")
					return strings.Contains(where, p.where) && strings.Contains(what, p.what)
				}) {
					t.Errorf("%s does not find it at %q with %q, but %q\n%s", p.check, p.where, p.what, found, show(r.Checks))
				}
			}()
			if r := a.ask(t, clean); len(r.Findings) > 0 {
				t.Fatalf("after it was put back: %s", show(r.Findings))
			}
			dirty = false
		})
		if dirty {
			t.Fatal("what comes after it would be found on a host that is not clean")
		}
	}
	t.Run("what only looks odd", func(t *testing.T) { onlyOdd(t, g.in(t)) })
}

// cure types in what a check says to do, and wants the check to find nothing then. What is a command stands alone, or
// behind the words before it and a colon.
func (g *garden) cure(t *testing.T, a *asker, q question, check string, found []doctor.Finding) {
	t.Helper()
	for _, f := range found {
		if f.Check != check {
			continue
		}
		_, command, words := strings.Cut(f.Remedy, ": ")
		if !words {
			command = f.Remedy
		}
		g.asRoot("sh", "-euc", "sudo() { \"$@\"; }\n"+command)
	}
	for _, f := range a.ask(t, q).Findings {
		if f.Check == check {
			t.Errorf("after what it said was done it finds %s", show(f))
		}
	}
}
