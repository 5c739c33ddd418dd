package systemd

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestGeneratedUnits compares what the files of generated units amount to by our reading with
// what the processes of a real systemd got. Every unit copies its own environment to a file.
func TestGeneratedUnits(t *testing.T) {
	if inside(t, false) {
		compareGenerated(t, 250)
	}
}

// TestGeneratedUnitsSystem does the same for the system manager, whose specifiers are others.
func TestGeneratedUnitsSystem(t *testing.T) {
	if inside(t, true) {
		compareGenerated(t, 60)
	}
}

func compareGenerated(t *testing.T, count int) {
	ctx, number := limited(t), seed(t)
	m, units, work := connectHere(t), userUnitDir(t), t.TempDir()
	g := &generator{Rand: rand.New(rand.NewPCG(number, number))}
	var sets []unitSet
	for i := range count {
		g.envDir = filepath.Join(work, fmt.Sprint(i))
		set := g.set(i, fmt.Sprintf("ExecStart=/bin/cp /proc/self/environ %s/%d.environ", work, i))
		writeFile(t, filepath.Join(units, set.fragment), set.unit)
		t.Cleanup(func() { os.Remove(filepath.Join(units, set.fragment)) })
		for name, text := range set.dropIns {
			writeFile(t, filepath.Join(units, name), text)
			t.Cleanup(func() { os.RemoveAll(filepath.Dir(filepath.Join(units, name))) })
		}
		for name, text := range set.envFiles {
			writeFile(t, filepath.Join(g.envDir, name), text)
		}
		sets = append(sets, set)
	}
	if err := m.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	specifiers, err := m.Specifiers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]string, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i, set := range sets {
		group.Go(func() (err error) {
			results[i], err = m.Start(ctx, set.name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	ctx = limited(t)
	var checked, unsure int
	t.Cleanup(func() {
		for _, set := range sets {
			m.ResetFailed(context.Background(), set.name)
		}
	})
	for i, set := range sets {
		u, err := m.Unit(ctx, set.name)
		if err != nil {
			t.Fatal(err)
		}
		settings := checkReadings(t, u, specifiers)
		got, started := readEnviron(t, filepath.Join(work, fmt.Sprintf("%d.environ", i)))
		fatal := slices.ContainsFunc(settings.Problems, func(p Problem) bool { return p.Fatal && strings.Contains(p.What, "does not start") })
		if started == fatal || started != (results[i] == "done") {
			t.Errorf("%s: started %v, result %q, problems %v", set.name, started, results[i], settings.Problems)
			describe(t, set)
			continue
		}
		if !started {
			continue
		}
		want := settings.Environment()
		for _, key := range set.variables {
			setting, set := want[key]
			value, have := got[key]
			switch {
			case setting.Unsure != "":
				unsure++
			case set != have || setting.Value != value:
				t.Errorf("%s: %s is %q (set: %v); we say %q (set: %v) from %s:%d", u.ID, key, value, have, setting.Value, set, setting.File, setting.Line)
				describe(t, sets[i])
			default:
				checked++
			}
		}
	}
	t.Logf("%d values compared, %d unsure", checked, unsure)
	if checked < 10*unsure {
		t.Errorf("too many values are unsure: %d of %d", unsure, checked+unsure)
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

// readEnviron reads a copy of /proc/PID/environ.
func readEnviron(t *testing.T, path string) (map[string]string, bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, false
	} else if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	for pair := range strings.SplitSeq(string(data), "\x00") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			environment[key] = value
		}
	}
	return environment, true
}
