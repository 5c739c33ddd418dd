package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unitCases() []unitCase { return slices.Concat(environmentCases, commandCases) }

// TestCases reads the cases from the files alone.
func TestCases(t *testing.T) {
	for _, c := range unitCases() {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			f := folders{etc: root + "/etc", run: root + "/run", usr: root + "/usr", files: root + "/files"}
			c.write(t, f)
			u := &Unit{ID: c.unitName(), SearchPath: []string{f.etc, f.run, f.usr}}
			for _, dir := range u.SearchPath {
				for _, name := range []string{u.ID, "llm@.service"} {
					path := filepath.Join(dir, name)
					if _, err := os.Stat(path); err == nil && u.FragmentPath == "" {
						u.FragmentPath = path
					}
				}
			}
			u, err := u.Rescan()
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, u, nil, f)
		})
	}
}

// TestCasesReal has a real systemd judge both the cases and our reading of them.
func TestCasesReal(t *testing.T) {
	if !inside(t, false) {
		return
	}
	m, ctx := connectHere(t), limited(t)
	specifiers, err := m.Specifiers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f := folders{
		etc: userUnitDir(t),
		run: filepath.Join(specifiers['t'], "systemd/user"),
		usr: filepath.Join(specifiers['h'], ".local/share/systemd/user"),
	}
	f.files = filepath.Join(filepath.Dir(f.etc), "files")
	version, err := m.property(ctx, managerPath, managerInterface, "Version")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range unitCases() {
		if c.v252 && majorVersion(fmt.Sprint(version)) != 252 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.write(t, f)
			reload(t, m)
			u, err := m.Unit(ctx, c.unitName())
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, u, specifiers, f)
			c.checkLoaded(t, m, u)
			if c.want != nil {
				c.probe(t, m, f, specifiers)
			}
		})
	}
}

// checkLoaded compares what systemd has loaded with what the case says.
func (c unitCase) checkLoaded(t *testing.T, m *Manager, u *Unit) {
	t.Helper()
	state := "loaded"
	if c.state != "" {
		state = c.state
	}
	if u.LoadState != state {
		t.Errorf("systemd says %s, want %s", u.LoadState, state)
	}
	var argv [][]string
	for _, command := range u.ExecStart {
		argv = append(argv, command.Argv)
	}
	if c.argv() != nil && !cmp.Equal(argv, c.argv()) {
		t.Errorf("systemd starts %q, want %q", argv, c.argv())
	}
	for name, want := range c.properties {
		iface := serviceInterface
		if strings.HasPrefix(name, "StartLimit") {
			iface = unitInterface
		}
		if got, err := m.property(limited(t), unitPath(u.ID), iface, name); err != nil || got != want {
			t.Errorf("systemd has %s=%v (%v), want %v", name, got, err, want)
		}
	}
}

// probe compares the environment that a process of the unit gets with what the case says: for
// that it is given another command.
func (c unitCase) probe(t *testing.T, m *Manager, f folders, specifiers Specifiers) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "environ")
	probe := unitCase{files: map[string]string{"run/" + c.unitName() + ".d/zzzz-probe.conf": "[Service]\nType=oneshot\nRestart=no\n" +
		"ExecStart=\nExecStop=\nExecStart=/bin/cp /proc/self/environ " + out + "\n"}}
	probe.write(t, f)
	reload(t, m)
	u, err := m.Unit(limited(t), c.unitName())
	if err != nil {
		t.Fatal(err)
	}
	c.checkEnvironment(t, checkReadings(t, u, specifiers))
	if result, err := m.Restart(limited(t), u.ID); err != nil || result != "done" {
		t.Fatalf("restart: %q, %v", result, err)
	}
	got, _ := readEnviron(t, out)
	own := map[string]string{}
	for key, value := range got {
		if _, ok := c.want[key]; ok || len(key) < 3 || strings.Contains(key, "_PATH") {
			own[key] = value
		}
	}
	delete(own, "_")
	if diff := cmp.Diff(c.want, own); diff != "" {
		t.Errorf("environment of the process (-want +got):\n%s", diff)
	}
}

func reload(t *testing.T, m *Manager) {
	t.Helper()
	if err := m.Reload(limited(t)); err != nil {
		t.Fatal(err)
	}
}
