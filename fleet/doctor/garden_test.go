package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/testhost"
	"github.com/1bit-systems/pkg/packager"
)

// unit is the adopted service of the clean host, and its package; newer is installed, too.
const (
	unit  = "llm.service"
	armed = "hrx-aaa0001"
	newer = "hrx-bbb0002"
)

// unitText is the unit as its owner wrote it, with a drop-in that names the package.
const (
	unitText = `[Unit]
Description=a model
[Service]
ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port 18095
Restart=always
[Install]
WantedBy=default.target
`
	hrxText = `[Service]
Environment=ONEBIT_LLAMA_SERVER=%h/.local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server
`
)

// garden is a host on which one problem after the other is planted. What a plant changes through it is put back, in
// reverse order, when the plant is over.
type garden struct {
	*testing.T
	host         *testhost.Host
	user, root   *asker
	home, data   string // inside: the home, and the folder of the packages
	state, units string
	undo         []func()
	extra        []string // packages to remove when nothing uses them any more
	reloads      bool     // the user's manager is to be reloaded once all is put back
	restarts     bool     // and the unit restarted
}

// newGarden makes the clean host: two packages, and a service that runs from the older one and was adopted.
func newGarden(t *testing.T) *garden {
	host := testhost.Require(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := host.Bring(self)
	if err != nil {
		t.Fatal(err)
	}
	g := &garden{T: t, host: host, home: host.Home, user: newAsker(t, host, host.User, program), root: newAsker(t, host, "root", program)}
	g.data, g.state = filepath.Join(g.home, ".local/share"), filepath.Join(g.home, ".local/state/1bit")
	g.units = filepath.Join(g.home, ".config/systemd/user")
	g.asRoot("install", "-d", "-o", host.User, "-g", host.User, filepath.Join(g.home, ".local"), g.data, filepath.Join(g.home, ".local/state"), g.state,
		filepath.Join(g.home, ".config"), filepath.Join(g.home, ".config/systemd"), g.units)
	g.asRoot("mkdir", "-p", "/var/log/journal", "/etc/1bit")
	g.asRoot("journalctl", "--flush")
	for _, id := range []string{"aaa0001", "bbb0002"} {
		g.install(id)
	}
	g.write(filepath.Join(g.units, unit), unitText)
	g.write(filepath.Join(g.units, unit+".d/hrx.conf"), hrxText)
	g.asUser("systemctl", "--user", "daemon-reload")
	g.asUser("systemctl", "--user", "enable", "--now", unit)
	g.user.ask(t, question{Do: "adopt", Args: []string{unit}})
	return g.in(t)
}

// in is the garden for one plant.
func (g *garden) in(t *testing.T) *garden {
	one := *g
	one.T, one.undo, one.extra, one.reloads, one.restarts = t, nil, nil, false, false
	return &one
}

// clear puts everything back.
func (g *garden) clear() {
	g.Helper()
	for _, back := range slices.Backward(g.undo) {
		back()
	}
	g.undo = nil
	if g.reloads {
		g.user.ask(g, question{Do: "reload"})
	}
	if g.restarts {
		g.user.ask(g, question{Do: "reset-failed", Args: []string{unit}})
		g.user.ask(g, question{Do: "restart", Args: []string{unit}})
	}
	for _, name := range g.extra {
		g.user.ask(g, question{Do: "remove", Args: []string{name}})
	}
}

// later adds what puts a change back.
func (g *garden) later(back func()) { g.undo = append(g.undo, back) }

// asRoot and asUser run a command inside.
func (g *garden) asRoot(name string, args ...string) string {
	g.Helper()
	return g.run("root", name, args)
}
func (g *garden) asUser(name string, args ...string) string {
	g.Helper()
	return g.run(g.host.User, name, args)
}

func (g *garden) run(user, name string, args []string) string {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := g.host.Run(ctx, user, name, args...)
	if err != nil {
		g.Fatal(err)
	}
	return out
}

// write writes a file, by rename, and makes its folders. What is below the home is the user's.
func (g *garden) write(path, text string) {
	g.Helper()
	g.keep(path)
	dir := filepath.Dir(path)
	for made := dir; ; made = filepath.Dir(made) {
		if _, err := os.Lstat(g.host.Outside(made)); err == nil {
			break
		}
		g.later(func() { _ = os.Remove(g.host.Outside(made)) })
	}
	outside := g.host.Outside(path)
	err := errors.Join(os.MkdirAll(g.host.Outside(dir), 0o755), os.WriteFile(outside+".tmp", []byte(text), 0o644))
	if err != nil {
		g.Fatal(err)
	}
	if rel, ok := strings.CutPrefix(path, g.home+"/"); ok {
		at := g.home
		for part := range strings.SplitSeq(rel+".tmp", "/") {
			at = filepath.Join(at, part)
			if err := os.Lchown(g.host.Outside(at), g.host.UID, g.host.UID); err != nil {
				g.Fatal(err)
			}
		}
	}
	if err := os.Rename(outside+".tmp", outside); err != nil {
		g.Fatal(err)
	}
}

// add appends to a file.
func (g *garden) add(path, text string) {
	g.Helper()
	old, err := os.ReadFile(g.host.Outside(path))
	if err != nil {
		g.Fatal(err)
	}
	g.write(path, string(old)+text)
}

// keep has a file put back as it is now, also if it is not there.
func (g *garden) keep(path string) {
	g.Helper()
	outside := g.host.Outside(path)
	info, err := os.Lstat(outside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		g.later(func() {
			if err := os.RemoveAll(outside); err != nil {
				g.Error(err)
			}
		})
	case err != nil:
		g.Fatal(err)
	default:
		aside := outside + ".kept"
		if err := os.Link(outside, aside); err != nil {
			g.Fatal(err)
		}
		g.later(func() {
			if err := errors.Join(os.Rename(aside, outside), ignoreMissing(os.Remove(aside)), os.Chmod(outside, info.Mode().Perm())); err != nil {
				g.Error(err)
			}
		})
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes a file.
func (g *garden) remove(path string) {
	g.Helper()
	g.keep(path)
	if err := os.Remove(g.host.Outside(path)); err != nil {
		g.Fatal(err)
	}
}

// link makes a symbolic link in the place of whatever is there.
func (g *garden) link(target, path string) {
	g.Helper()
	g.keep(path)
	if err := errors.Join(ignoreMissing(os.Remove(g.host.Outside(path))), os.Symlink(target, g.host.Outside(path))); err != nil {
		g.Fatal(err)
	}
}

// chmod changes the mode of a file or folder.
func (g *garden) chmod(path string, mode fs.FileMode) {
	g.Helper()
	outside := g.host.Outside(path)
	info, err := os.Stat(outside)
	if err != nil {
		g.Fatal(err)
	}
	if err := os.Chmod(outside, mode); err != nil {
		g.Fatal(err)
	}
	g.later(func() {
		if err := os.Chmod(outside, info.Mode()); err != nil {
			g.Error(err)
		}
	})
}

// chown gives a file or folder to another account.
func (g *garden) chown(path, user string) {
	g.Helper()
	info, err := os.Stat(g.host.Outside(path))
	if err != nil {
		g.Fatal(err)
	}
	was := info.Sys().(*syscall.Stat_t)
	g.later(func() { g.asRoot("chown", fmt.Sprintf("%d:%d", was.Uid, was.Gid), path) })
	g.asRoot("chown", user+":", path)
}

// remount puts a folder onto itself with an option.
func (g *garden) remount(path, option string) {
	g.Helper()
	g.asRoot("mount", "--bind", path, path)
	g.later(func() { g.asRoot("umount", path) })
	g.asRoot("mount", "-o", "remount,bind,"+option, path)
}

// dropIn writes a drop-in of the unit and has it loaded.
func (g *garden) dropIn(name, text string) {
	g.Helper()
	g.write(filepath.Join(g.units, unit+".d", name), text)
	g.reload()
}

// reload has the user's manager load what was written, now and when the plant is over.
func (g *garden) reload() {
	g.Helper()
	g.reloads = true
	g.user.ask(g, question{Do: "reload"})
}

// restart has the unit started anew, now and when the plant is over.
func (g *garden) restart() {
	g.Helper()
	g.restarts = true
	g.user.ask(g, question{Do: "restart", Args: []string{unit}})
}

// install installs a package whose server sleeps in the user's store; a plant's is removed afterwards.
func (g *garden) install(id string, alter ...func(m *packager.Manifest)) {
	g.Helper()
	archive, err := g.host.Bring(pack(g, id, alter...))
	if err != nil {
		g.Fatal(err)
	}
	g.user.ask(g, question{Do: "install", Args: []string{archive}})
	g.extra = append(g.extra, "hrx-"+id)
}

// switchTo arms a package for the unit; afterwards the one before is armed as it was.
func (g *garden) switchTo(id string) {
	g.Helper()
	ours := filepath.Join(g.units, unit+".d/zz-1bit")
	names, err := filepath.Glob(g.host.Outside(ours) + "*")
	if err != nil {
		g.Fatal(err)
	}
	for _, name := range names {
		g.keep(filepath.Join(filepath.Dir(ours), filepath.Base(name)))
	}
	g.later(func() {
		now, err := filepath.Glob(g.host.Outside(ours) + "*")
		for _, name := range now {
			if !slices.Contains(names, name) && !strings.HasSuffix(name, ".kept") {
				err = errors.Join(err, os.Remove(name))
			}
		}
		if err != nil {
			g.Error(err)
		}
	})
	g.reloads = true
	g.user.ask(g, question{Do: "switch", Args: []string{unit, id}})
}

// recorded makes a tree that stands for /proc, /sys, /etc and the like where the host's own cannot be changed, and
// returns its path inside. Files are given by their path below it.
func (g *garden) recorded(files map[string]string) string {
	g.Helper()
	dir := filepath.Join(g.TempDir(), "recorded-"+strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, g.Name()))
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			g.Fatal(err)
		}
	}
	inside, err := g.host.Bring(dir)
	if err != nil {
		g.Fatal(err)
	}
	return inside
}

// eventually waits for a condition.
func (g *garden) eventually(what string, holds func() bool) {
	g.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.Fatalf("it does not come to be that %s", what)
		}
	}
}

// show is what was found, for people.
func show(findings any) string {
	return strings.ReplaceAll(fmt.Sprintf("%+v", findings), "} {", "}\n{")
}
