package fleet

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// bytesOf writes a file of ours for a package and a generation.
func bytesOf(t *testing.T, pkg, from string, generation int, rollback string) []byte {
	t.Helper()
	d := ourFile(pkg, "", rollback)
	d.Generation, d.RolledBackFrom = generation, ref(from)
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// folder makes a drop-in folder with files by name.
func folder(t *testing.T, files map[string][]byte) pair {
	t.Helper()
	p := pair{t.TempDir()}
	for name, data := range files {
		if data == nil {
			continue
		}
		if err := os.WriteFile(p.path(name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// contents reads a folder, with the SHA-256 for the bytes.
func contents(t *testing.T, p pair) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(p.path(e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = sum(data)
	}
	return out
}

func sums(files map[string][]byte) map[string]string {
	out := map[string]string{}
	for name, data := range files {
		if data != nil {
			out[name] = sum(data)
		}
	}
	return out
}

// Every state that a switch passes through, as the package's comment has it, is settled from the files alone: to
// the old pair, or to "in place" with the old pair still at hand.
func TestSettleEveryStateOfASwitch(t *testing.T) {
	oldA, oldPrev := bytesOf(t, "a", "", 3, rollbackExchange), bytesOf(t, "z", "a", 3, rollbackRemove)
	next, nextPrev := bytesOf(t, "b", "", 4, rollbackExchange), bytesOf(t, "a", "b", 4, rollbackExchange)
	lone := bytesOf(t, "x", "", 2, rollbackRemove)
	temp := ".zz-1bit.conf.new.12345.tmp"
	type files = map[string][]byte
	for _, tt := range []struct {
		name    string
		files   files
		want    files
		inPlace bool
	}{
		{"nothing", files{}, files{}, false},
		{"before", files{dropInName: oldA, prevName: oldPrev}, files{dropInName: oldA, prevName: oldPrev}, false},
		{"temporary file", files{dropInName: oldA, temp: []byte("to"), ".other.1.tmp": []byte("kept")}, files{dropInName: oldA, ".other.1.tmp": []byte("kept")}, false},
		{".prev staged", files{dropInName: oldA, prevName: oldPrev, prevNextName: nextPrev}, files{dropInName: oldA, prevName: oldPrev}, false},
		{"staged", files{dropInName: oldA, prevName: oldPrev, prevNextName: nextPrev, nextName: next}, files{dropInName: oldA, prevName: oldPrev}, false},
		{"halfway", files{dropInName: oldA, prevName: nextPrev, prevNextName: oldPrev, nextName: next}, files{dropInName: oldA, prevName: oldPrev}, false},
		{"in place", files{dropInName: next, prevName: nextPrev, prevNextName: oldPrev, nextName: oldA}, files{dropInName: next, prevName: nextPrev, prevNextName: oldPrev, nextName: oldA}, true},
		{"cleaning", files{dropInName: next, prevName: nextPrev, prevNextName: oldPrev}, files{dropInName: next, prevName: nextPrev}, false},

		{"no .prev before: halfway", files{dropInName: oldA, prevName: nextPrev, nextName: next}, files{dropInName: oldA}, false},
		{"no .prev before: in place", files{dropInName: next, prevName: nextPrev, nextName: oldA}, files{dropInName: next, prevName: nextPrev, nextName: oldA}, true},

		{"first: staged", files{nextName: next}, files{}, false},
		{"first, over a lone .prev: staged", files{prevName: lone, nextName: next}, files{prevName: lone}, false},
		{"first: moved", files{dropInName: next}, files{dropInName: next}, false},

		{"no new .prev: staged", files{dropInName: oldA, prevName: oldPrev, nextName: next}, files{dropInName: oldA, prevName: oldPrev}, false},
		{"no new .prev: in place", files{dropInName: next, prevName: oldPrev, nextName: oldA}, files{dropInName: next, prevName: oldPrev, nextName: oldA}, true},
		{"edited meanwhile", files{dropInName: []byte("[Service]\nNice=1\n"), prevName: nextPrev, nextName: oldA}, files{dropInName: []byte("[Service]\nNice=1\n"), prevName: nextPrev}, false},
	} {
		p := folder(t, tt.files)
		_, inPlace, err := p.settle()
		if err != nil || inPlace != tt.inPlace {
			t.Errorf("%s: in place %v, error %v", tt.name, inPlace, err)
		}
		if diff := cmp.Diff(sums(tt.want), contents(t, p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A switch that is undone leaves what was there before, wherever it got to, and so does one that is cut off in the
// middle of being undone.
func TestRevert(t *testing.T) {
	oldA, oldPrev := bytesOf(t, "a", "", 3, rollbackExchange), bytesOf(t, "z", "a", 3, rollbackRemove)
	next, nextPrev := bytesOf(t, "b", "", 4, rollbackExchange), bytesOf(t, "a", "b", 4, rollbackExchange)
	type files = map[string][]byte
	for name, before := range map[string]files{
		"first":            {},
		"with .prev":       {dropInName: oldA, prevName: oldPrev},
		"without .prev":    {dropInName: oldA},
		"over a lone one":  {prevName: oldPrev},
		"among a person's": {dropInName: oldA, "hrx.conf": []byte("[Service]\n")},
	} {
		for _, staged := range [][]byte{nil, nextPrev} {
			if staged != nil && before[dropInName] == nil {
				continue // a first switch has no .prev
			}
			p := folder(t, before)
			if err := p.stage(next, staged); err != nil {
				t.Fatal(err)
			}
			if err := p.swap(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(p.path(dropInName))
			if err != nil || sum(got) != sum(next) {
				t.Fatalf("%s: after the swap the active file is %q, %v", name, got, err)
			}
			if staged != nil {
				if got, err := os.ReadFile(p.path(prevName)); err != nil || sum(got) != sum(staged) {
					t.Errorf("%s: after the swap .prev is %q, %v", name, got, err)
				}
			}
			if err := errors.Join(p.revert(next, before[dropInName]), p.clean()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(sums(before), contents(t, p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// Whatever the order in which files survive a cut, settling twice is settling once.
func TestSettleIsIdempotent(t *testing.T) {
	all := map[string][]byte{
		dropInName: bytesOf(t, "a", "", 3, rollbackExchange), prevName: bytesOf(t, "a", "b", 4, rollbackExchange),
		nextName: bytesOf(t, "b", "", 4, rollbackExchange), prevNextName: bytesOf(t, "z", "a", 3, rollbackRemove),
	}
	names := slices.Sorted(maps.Keys(all))
	for mask := range 1 << len(names) {
		files := map[string][]byte{}
		for i, name := range names {
			if mask&(1<<i) != 0 {
				files[name] = all[name]
			}
		}
		p := folder(t, files)
		if _, _, err := p.settle(); err != nil {
			t.Fatalf("%v: %v", mask, err)
		}
		once := contents(t, p)
		changed, inPlace, err := p.settle()
		if err != nil || changed || inPlace {
			t.Errorf("%b: second time changed %v, in place %v, %v", mask, changed, inPlace, err)
		}
		if diff := cmp.Diff(once, contents(t, p)); diff != "" {
			t.Errorf("%b: second time (-once +twice):\n%s", mask, diff)
		}
		if once[dropInName] != sum(files[dropInName]) {
			t.Errorf("%b: the active file changed", mask)
		}
	}
}

func TestPairRefusesWhatIsNoFile(t *testing.T) {
	p := pair{t.TempDir()}
	target := filepath.Join(p.dir, "dotfiles.conf")
	if err := os.WriteFile(target, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, p.path(dropInName)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.read(dropInName); err == nil {
		t.Error("a link is read as our drop-in")
	}
	if err := p.stage(bytesOf(t, "b", "", 4, rollbackRemove), nil); err != nil {
		t.Fatal(err)
	}
	if err := p.swap(); err == nil {
		t.Error("a link was replaced")
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "kept" {
		t.Errorf("target holds %q, %v", data, err)
	}
}

func TestTempNamesAreRecognised(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dropInName, prevName, nextName, prevNextName} {
		f, err := os.CreateTemp(dir, "."+name+".*.tmp") // as atomicfile does
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if base := filepath.Base(f.Name()); !ours(base) || !atomicfile.IsTemp(base) {
			t.Errorf("%s is not recognised", base)
		}
	}
	if ours(".hrx.conf.1.tmp") || ours(".zz-1bit.config.1.tmp") {
		t.Error("somebody else's temporary file is taken for ours")
	}
}
