package fleet

import (
	"os"
	"strings"
	"testing"
)

// came is a file that came back by itself, after the package from failed.
func came(pkg, from, before, rollback string) *DropIn {
	d := resultFile(pkg, from, before, rollback)
	d.Act = actReturn
	d.block(ref(from), "null log-probabilities")
	return d
}

// edit adds a line of a person's.
func edit(data []byte) []byte {
	return []byte(strings.Replace(string(data), "[Service]\n", "[Service]\nNice=5\n", 1))
}

// A rollback goes one back from what a switch or a return armed, and nowhere from what a rollback armed, whatever a
// person has added to the files.
func TestAway(t *testing.T) {
	bytesOf := func(d *DropIn) []byte {
		if d == nil {
			return nil
		}
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	torn := []byte("# Written by 1bit: the pack")
	for _, tt := range []struct {
		name         string
		active, prev []byte
		to           string // of the package
		remove       bool
		rebuilt      bool
		done         string
	}{
		{name: "first switch", active: bytesOf(ourFile("b", "a", rollbackRemove)), to: "a", remove: true},
		{name: "switch", active: bytesOf(ourFile("c", "b", rollbackExchange)), prev: bytesOf(resultFile("b", "c", "a", rollbackRemove)), to: "b"},
		{name: "switch, .prev is gone", active: bytesOf(ourFile("c", "b", rollbackExchange)), to: "b", rebuilt: true},
		{name: "switch, .prev is torn", active: bytesOf(ourFile("c", "b", rollbackExchange)), prev: torn, to: "b", rebuilt: true},
		{name: "switch, .prev is another's", active: bytesOf(ourFile("c", "b", rollbackExchange)), prev: bytesOf(resultFile("b", "d", "a", rollbackRemove)), to: "b", rebuilt: true},
		{name: "rolled back", active: bytesOf(resultFile("b", "c", "a", rollbackRemove)), prev: bytesOf(ourFile("c", "b", rollbackExchange)), done: "hrx-c was rolled back to hrx-b already"},
		{name: "first switch, rolled back", prev: bytesOf(ourFile("b", "a", rollbackRemove)), done: "hrx-b was rolled back already"},

		{name: "edited first switch", active: edit(bytesOf(ourFile("b", "a", rollbackRemove))), to: "a", remove: true},
		{name: "edited first switch, rolled back", prev: edit(bytesOf(ourFile("b", "a", rollbackRemove))), done: "hrx-b was rolled back already"},
		{name: "edited switch", active: edit(bytesOf(ourFile("c", "b", rollbackExchange))), prev: bytesOf(resultFile("b", "c", "a", rollbackRemove)), to: "b"},
		{name: "edited switch, rolled back", active: bytesOf(resultFile("b", "c", "a", rollbackRemove)), prev: edit(bytesOf(ourFile("c", "b", rollbackExchange))), done: "already"},
		{name: "rolled back, then edited", active: edit(bytesOf(resultFile("b", "c", "a", rollbackRemove))), prev: bytesOf(ourFile("c", "b", rollbackExchange)), done: "hrx-c was rolled back to hrx-b already"},

		{name: "torn switch", active: torn, prev: bytesOf(resultFile("b", "c", "a", rollbackRemove)), to: "b"},
		{name: "torn first switch", active: torn, remove: true},
		{name: "torn first switch, rolled back", prev: torn, done: "already"},
		{name: "rolled back, then torn", active: torn, prev: bytesOf(ourFile("c", "b", rollbackExchange)), done: "hrx-c was rolled back already"},
		{name: "both torn", active: torn, prev: torn, remove: true},

		{name: "returned to the first switch", active: bytesOf(came("b", "c", "a", rollbackRemove)), to: "a", remove: true},
		{name: "returned", active: bytesOf(came("c", "d", "b", rollbackExchange)), prev: bytesOf(resultFile("b", "c", "", rollbackRemove)), to: "b"},
		{name: "returned, not written ahead", active: bytesOf(came("c", "d", "b", rollbackExchange)), prev: bytesOf(resultFile("c", "d", "b", rollbackExchange)), to: "b", rebuilt: true},
		{name: "returned, rolled back", active: bytesOf(resultFile("b", "c", "", rollbackRemove)), prev: bytesOf(came("c", "d", "b", rollbackExchange)), done: "hrx-c was rolled back to hrx-b already"},
		{name: "returned, rolled back, then torn", active: torn, prev: bytesOf(came("c", "d", "b", rollbackExchange)), done: "hrx-c was rolled back already"},
	} {
		p := folder(t, map[string][]byte{dropInName: tt.active, prevName: tt.prev})
		v := &view{}
		if err := v.readPair(p); err != nil {
			t.Fatal(err)
		}
		w, done := v.away()
		if done != "" || tt.done != "" {
			if tt.done == "" || !strings.Contains(done, tt.done) {
				t.Errorf("%s: done %q, want %q", tt.name, done, tt.done)
			}
			continue
		}
		if w.to.Name != ref(tt.to).Name || w.rebuilt != tt.rebuilt || (w.file == nil) != (tt.remove || tt.rebuilt) {
			t.Errorf("%s: to %q, rebuilt %v, file %q", tt.name, w.to.Name, w.rebuilt, w.file)
		}
	}
}

// Where --again and --undo lead where the files are not as an act of ours leaves them.
func TestFurtherAndBackFromOddFiles(t *testing.T) {
	file := func(d *DropIn) []byte {
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	older := ourFile("c", "b", rollbackExchange)
	older.Generation = 3
	adopted := ourFile("b", "", rollbackRemove)
	adopted.Act, adopted.Adopted = actAdopt, []Origin{{"/u/llm.service", 3, "ab"}}
	rolled := resultFile("b", "c", "", rollbackRemove)
	rolled.Adopted = adopted.Adopted
	torn := []byte("# Written by 1bit: the pack")
	for _, tt := range []struct {
		name         string
		active, prev []byte
		undo         bool
		want         string // of the target: its id, "-" for the unit's own files; or what is said
		way          way
	}{
		{name: "what served before is what was left", active: file(resultFile("b", "c", "c", rollbackExchange)), want: "-", way: wayAway},
		{name: "what served before is what is armed", active: file(resultFile("b", "c", "b", rollbackExchange)), want: "-", way: wayAway},
		{name: "only adopted", active: file(adopted), want: "adopted and not switched"},
		{name: "adopted and rolled back", active: file(rolled), prev: file(ourFile("c", "b", rollbackExchange)), want: "was adopted with"},
		{name: "what is in force is torn", active: torn, prev: file(resultFile("b", "c", "a", rollbackRemove)), want: "roll back first"},
		{name: ".prev is torn", active: file(ourFile("c", "b", rollbackExchange)), prev: torn, want: "-", way: wayAway},

		{name: ".prev is an older one", active: file(resultFile("b", "c", "a", rollbackRemove)), prev: file(older), undo: true, want: "c", way: wayAnew},
		{name: ".prev is gone", active: file(resultFile("b", "c", "a", rollbackRemove)), undo: true, want: "c", way: wayAnew},
		{name: "edited in between", active: edit(file(resultFile("b", "c", "a", rollbackRemove))), prev: file(ourFile("c", "b", rollbackExchange)), undo: true, want: "c"},
		{name: "torn in between", active: torn, prev: file(ourFile("c", "b", rollbackExchange)), undo: true, want: "c"},
		{name: "torn before", active: torn, prev: file(resultFile("b", "c", "a", rollbackRemove)), undo: true, want: "cannot be told"},
		{name: "put away and torn", prev: torn, undo: true, want: "cannot be told"},
		{name: "put away", prev: file(ourFile("c", "b", rollbackExchange)), undo: true, want: "c", way: wayBack},
		{name: "adopted", active: file(adopted), undo: true, want: "nothing was rolled back"},
	} {
		v := &view{}
		if err := v.readPair(folder(t, map[string][]byte{dropInName: tt.active, prevName: tt.prev})); err != nil {
			t.Fatal(err)
		}
		w, done, err := v.goingBack(RollbackOptions{Again: !tt.undo, Undo: tt.undo})
		if said := done + errText(err); said != "" || len(tt.want) > 1 {
			if len(tt.want) < 2 || !strings.Contains(said, tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, said, tt.want)
			}
			continue
		}
		if to := strings.TrimPrefix(w.to.Name, "hrx-"); tt.want != "-" && to != tt.want || w.way != tt.way {
			t.Errorf("%s: to %q by way %d, want %q by %d", tt.name, to, w.way, tt.want, tt.way)
		}
	}
}

// What the unit was rolled back from stays blocked, also where a person has edited the files.
func TestBlocksOfEditedFiles(t *testing.T) {
	data, err := ourFile("b", "a", rollbackRemove).Encode()
	if err != nil {
		t.Fatal(err)
	}
	v := &view{}
	if err := v.readPair(folder(t, map[string][]byte{prevName: edit(data)})); err != nil {
		t.Fatal(err)
	}
	if _, ok := blocked(v.blocks(), ref("b")); !ok {
		t.Errorf("blocked: %v", v.blocks())
	}
	if err := v.foreign(); err == nil || !strings.Contains(err.Error(), prevName+": not as this program writes it: line 5: Nice= is not ours") {
		t.Errorf("a switch that would lose the line: %v", err)
	}
}

// Whatever is in the way of .prev is moved aside as it is.
func TestSetAside(t *testing.T) {
	p := folder(t, map[string][]byte{prevName + ".1": []byte("there already"), "target": []byte("kept")})
	if err := os.Symlink(p.path("target"), p.path(prevName)); err != nil {
		t.Fatal(err)
	}
	as, err := p.setAside(prevName)
	if err != nil || as != prevName+".2" {
		t.Fatalf("moved to %q, %v", as, err)
	}
	if to, err := os.Readlink(p.path(as)); err != nil || to != p.path("target") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if err := os.MkdirAll(p.path(prevName)+"/inside", 0o755); err != nil {
		t.Fatal(err)
	}
	if as, err = p.setAside(prevName); err != nil || as != prevName+".3" {
		t.Fatalf("moved to %q, %v", as, err)
	}
	if _, err := os.Stat(p.path(as) + "/inside"); err != nil {
		t.Error(err)
	}
}
