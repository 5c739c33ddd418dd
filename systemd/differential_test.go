package systemd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"golang.org/x/sync/errgroup"
)

// TestGeneratedUnits compares what the files of generated units amount to by our reading, from the
// files alone, with what the processes of a real systemd got: the environment and the command
// line. The same observations then have to find every one of the flawed readings.
func TestGeneratedUnits(t *testing.T) {
	if inside(t, false) {
		compareGenerated(t, 2600)
	}
}

// TestGeneratedUnitsSystem does the same for the system manager, whose specifiers are others.
func TestGeneratedUnitsSystem(t *testing.T) {
	if inside(t, true) {
		compareGenerated(t, 500)
	}
}

// generatedAtOnce is how many units are there at a time: a reload, and the search for the files
// of a unit, cost more the more there are.
const generatedAtOnce = 400

func compareGenerated(t *testing.T, count int) {
	number := seed(t)
	g := &generator{Rand: rand.New(rand.NewPCG(number, number)), inPath: os.Getuid() == 0}
	var err error
	if g.home, err = os.UserHomeDir(); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(g.home, "gen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	g.noter = bringStarted(t, work)
	if g.inPath {
		name := filepath.Join("/usr/local/bin", filepath.Base(g.noter))
		if err := os.Symlink(g.noter, name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(name) })
	}
	var total tally
	var hard int
	var flaws = flawedReadings()
	for first := 0; first < count; first += generatedAtOnce {
		observed := observe(t, g, work, first, min(first+generatedAtOnce, count))
		for _, o := range observed {
			if o.set.hard() {
				hard++
			}
			difference, compared := o.compare(read)
			total.add(compared)
			if difference != "" {
				t.Errorf("%s: %s", o.set.name, difference)
				describe(t, o.set)
			}
		}
		find(t, observed, flaws)
		removeGenerated(t, observed)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d units, %d of them with resets, quotes or specifiers: %+v", count, hard, total)
	if count < 1000 {
		clear(flaws) // too few for the rarest
	}
	for name := range flaws {
		t.Errorf("no unit tells that this reading is wrong: %s", name)
	}
	if hard < count*3/10 {
		t.Errorf("only %d of %d units are hard to read", hard, count)
	}
	if total.values < 10*total.unsureValues || total.commands < 5*total.unsureCommands {
		t.Errorf("too much is unsure: %+v", total)
	}
}

// observe generates units and has systemd start them.
func observe(t *testing.T, g *generator, work string, first, end int) []*observation {
	m, units := connectHere(t), userUnitDir(t)
	specifiers, err := m.Specifiers(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := m.Environment(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	var observed []*observation
	for i := first; i < end; i++ {
		g.envDir = filepath.Join(work, fmt.Sprint(i))
		set := g.set(i)
		writeFile(t, filepath.Join(units, set.fragment), set.unit)
		for name, text := range set.dropIns {
			writeFile(t, filepath.Join(units, name), text)
		}
		for name, text := range set.envFiles {
			writeFile(t, filepath.Join(g.envDir, name), text)
		}
		for name, target := range set.links {
			if err := os.Symlink(target, filepath.Join(units, name)); err != nil {
				t.Fatal(err)
			}
		}
		u := &Unit{ID: set.name, FragmentPath: filepath.Join(units, set.fragment), SearchPath: m.searchPath}
		observed = append(observed, &observation{set: set, unit: u, specifiers: specifiers, inherited: inherited,
			noter: g.noter, inPath: g.inPath})
	}
	if err := m.Reload(limited(t)); err != nil {
		t.Fatal(err)
	}
	listed := ListUnitFiles(m.searchPath)
	for _, o := range observed {
		if len(o.set.links) > 0 { // which of the links count only systemd tells
			names, err := m.property(limited(t), unitPath(o.set.name), unitInterface, "Names")
			if err != nil {
				t.Fatal(err)
			}
			o.unit.Names, _ = names.([]string)
		}
		if o.unit, err = o.unit.Rescan(); err != nil {
			t.Fatal(err)
		}
		one, ok := listed.Unit(Listed{Name: o.set.name}, time.Now().Add(time.Hour))
		if ok == (len(o.set.links) > 0) || ok && !slices.Equal(one.DropInPaths, o.unit.DropInPaths) {
			t.Errorf("%s: told from the files: %v; %+v, a reload would find %q", o.set.name, ok, one, o.unit.DropInPaths)
		}
	}
	for some := range slices.Chunk(observed, 100) {
		startAll(t, m, some)
	}
	failed, err := m.list(limited(t), "ListUnitsByPatterns", []string{"failed"}, []string{"gen-*"})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range observed {
		if slices.ContainsFunc(failed, func(unit sdbus.UnitStatus) bool { return unit.Name == o.set.name }) {
			o.result = "failed"
		}
		o.runs = runs(t, work, o.set.name)
		if i%10 == 0 {
			checkReadings(t, o.unit, specifiers)
		} else if len(o.set.links) == 0 && !o.set.prefixed() {
			continue
		}
		loaded, err := m.property(limited(t), unitPath(o.set.name), unitInterface, "DropInPaths")
		if paths, _ := loaded.([]string); err != nil || len(paths) > 0 && !slices.Equal(paths, o.unit.DropInPaths) {
			t.Errorf("%s: systemd merges %q (%v), we find %q", o.set.name, paths, err, o.unit.DropInPaths)
		}
	}
	if err := m.call(limited(t), "ResetFailed", nil); err != nil {
		t.Fatal(err)
	}
	return observed
}

// startAll starts units and waits for all of them to end. It does not wait for their jobs: for
// that systemd would have to tell every change of every unit, which costs as much as the rest.
func startAll(t *testing.T, m *Manager, observed []*observation) {
	t.Helper()
	ctx := limited(t)
	var group errgroup.Group
	group.SetLimit(16)
	for _, o := range observed {
		group.Go(func() error {
			var job godbus.ObjectPath
			o.result = "done"
			if err := m.call(ctx, "StartUnit", []any{o.set.name, "replace"}, &job); err != nil {
				o.result = err.Error()
			}
			return nil
		})
	}
	group.Wait()
	for {
		all, err := m.list(ctx, "ListUnitsByPatterns", []string{}, []string{"gen-*"})
		if err != nil {
			t.Fatal(err)
		}
		// One whose job still waits is inactive.
		if !slices.ContainsFunc(all, func(u sdbus.UnitStatus) bool {
			return u.JobId != 0 || u.ActiveState != "inactive" && u.ActiveState != "failed"
		}) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// removeGenerated takes the files of units away again.
func removeGenerated(t *testing.T, observed []*observation) {
	t.Helper()
	units := userUnitDir(t)
	for _, o := range observed {
		os.Remove(filepath.Join(units, o.set.fragment))
		for name := range o.set.links {
			os.Remove(filepath.Join(units, name))
		}
		for name := range o.set.dropIns {
			os.RemoveAll(filepath.Dir(filepath.Join(units, name)))
		}
	}
}

// checkReadings compares the ways to read one unit's files with each other.
func checkReadings(t *testing.T, u *Unit, specifiers Specifiers) *Settings {
	t.Helper()
	settings, err := ReadSettings(u, specifiers)
	if err != nil {
		t.Fatal(err)
	}
	again, err := u.Rescan()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.DropInPaths, u.DropInPaths) {
		t.Errorf("%s: systemd merges %q, we find %q", u.ID, u.DropInPaths, again.DropInPaths)
	}
	for i, path := range u.DropInPaths {
		data, err := readFile(path)
		if err != nil {
			continue // a link that leads nowhere
		}
		without := *u
		without.DropInPaths = slices.Delete(slices.Clone(u.DropInPaths), i, i+1)
		asIf, err := ReadSettings(&without, specifiers, Edit{Path: path, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(asIf.Environment(), settings.Environment()) {
			t.Errorf("%s: as if %s were there: %v, but it is there: %v", u.ID, path, asIf.Environment(), settings.Environment())
		}
	}
	return settings
}

func describe(t *testing.T, s unitSet) {
	t.Helper()
	t.Logf("%s: %q", s.fragment, s.unit)
	for _, files := range []map[string]string{s.dropIns, s.envFiles} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			t.Logf("%s: %q", name, files[name])
		}
	}
}
