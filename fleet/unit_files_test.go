package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// unitFiles is one unit of a host on which no manager answers: its files, and what is known to serve.
type unitFiles struct {
	testing.TB
	h    *Host
	base string // the id of the package that the unit's own files name
	live string // the package that serves, "" for none
}

// newUnitFiles makes a unit and packages by their ids. The folder is in memory where it can be: thousands of synced
// writes would be long.
func newUnitFiles(t testing.TB, ids ...string) *unitFiles {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "onebit")
	if err != nil {
		dir = t.TempDir()
	} else {
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	for _, id := range ids {
		bin := filepath.Join(dir, "1bit-hrx-"+id, "bin")
		if err := errors.Join(os.MkdirAll(bin, 0o755), os.WriteFile(filepath.Join(bin, "llama-server"), nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(1e9, 0)
	u := &unitFiles{TB: t, base: ids[0], live: ids[0]}
	u.h = &Host{
		Scope: systemd.ScopeUser, Store: store.Open(dir, filepath.Join(dir, "state")), StateDir: filepath.Join(dir, "state"),
		UnitDir: filepath.Join(dir, "units"), User: "ai", Now: func() time.Time { now = now.Add(time.Second); return now },
		Connect: func(context.Context) (*systemd.Manager, error) { return nil, systemd.ErrNoBus },
	}
	return u
}

const modelUnit = "llm.service"

func (u *unitFiles) ref(id string) PackageRef {
	return PackageRef{Name: "hrx-" + id, Path: filepath.Join(u.h.Store.Dir, "1bit-hrx-"+id)}
}

func (u *unitFiles) files() pair { return pair{u.h.dropInDir(modelUnit)} }

func (u *unitFiles) session() *session {
	return &session{h: u.h, place: u.h.place(), unit: modelUnit}
}

func (u *unitFiles) view() *view {
	u.Helper()
	v := &view{place: u.h.place()}
	if err := v.readPair(u.files()); err != nil {
		u.Fatal(err)
	}
	return v
}

// armed is the id of the package that the files arm.
func (u *unitFiles) armed() string {
	u.Helper()
	if a := u.view().active; a != nil {
		return id(a.Package)
	}
	return u.base
}

func id(p PackageRef) string { return strings.TrimPrefix(p.Name, "hrx-") }

// blocked lists the ids that are blocked, sorted.
func (u *unitFiles) blocked() []string {
	u.Helper()
	var out []string
	for _, b := range u.view().blocks() {
		out = append(out, strings.TrimPrefix(b.Name, "hrx-"))
	}
	slices.Sort(out)
	return out
}

// switchTo does to the files what a switch does, by what is known to serve.
func (u *unitFiles) switchTo(to string) error {
	u.Helper()
	v := u.view()
	if _, bad := blocked(v.blocks(), u.ref(to)); bad {
		return fmt.Errorf("%w: %s is blocked", ErrRefused, to)
	}
	if err := v.foreign(); err != nil {
		return err
	}
	entries, err := u.h.journal().entries(string(u.h.Scope), modelUnit)
	if err != nil {
		return err
	}
	p := past{active: v.active, prev: v.rollbackFile(), base: u.ref(u.base), blocks: v.blocks()}
	if u.live != "" {
		p.serving = u.ref(u.live)
	}
	env := []Assignment{{serverVariable, u.ref(u.base).Path + "/bin/llama-server"}}
	if v.active != nil {
		p.served, env = served(entries, v.active.Package), v.active.Environment
	}
	if u.armed() == to {
		return nil
	}
	next := &DropIn{Unit: modelUnit, Package: u.ref(to), Act: actSwitch, Generation: v.generation(), By: "ai", At: u.h.Now().UTC(), Blocks: v.blocks()}
	if next.Environment, err = v.move(env, next.Package); err != nil {
		return err
	}
	t := p.target(next.Package)
	next.ServedBefore, next.Rollback = t.ref, rollbackExchange
	var prev []byte
	if t.remove {
		next.Rollback = rollbackRemove
	} else {
		d, err := p.file(t.ref, next, v.move)
		if err == nil {
			prev, err = d.Encode()
		}
		if err != nil {
			return err
		}
	}
	data, err := next.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(u.files().dir, 0o755); err != nil {
		return err
	}
	from := u.armed()
	if err := u.files().renew(data, prev, v.activeData); err != nil {
		return err
	}
	if prev == nil {
		if err := u.files().removePrev(); err != nil {
			return err
		}
	}
	u.record(actSwitch, from, to, resultArmed)
	return nil
}

func (u *unitFiles) record(act, from, to, result string) {
	u.Helper()
	e, err := u.h.intend(u.Context(), entry{Unit: modelUnit, Act: act, From: "hrx-" + from, To: "hrx-" + to})
	if err == nil {
		err = u.h.close(u.Context(), e, closing{phase: phaseCommit, result: result})
	}
	if err != nil {
		u.Fatal(err)
	}
}

// restart does to the files what a restart does, on a package that serves or fails.
func (u *unitFiles) restart(serves bool) {
	u.Helper()
	armed, a := u.armed(), u.view().active
	u.live = armed
	if serves {
		u.record(actRestart, armed, armed, resultServes)
		return
	}
	u.record(actRestart, armed, armed, resultFailed)
	if a == nil || a.rolledBack() {
		u.live = ""
		return
	}
	if err := u.session().disarm(u.Context(), RollbackOptions{Reason: "it failed"}, &Outcome{}); err != nil {
		u.Fatal(err)
	}
	u.live = u.armed()
	u.record(actRestart, u.live, u.live, resultServes)
}

func (u *unitFiles) rollback(opts RollbackOptions) (*Outcome, error) {
	return u.h.Rollback(u.Context(), modelUnit, opts)
}

func (u *unitFiles) unblock(name string) error {
	return u.session().unblock(u.Context(), "hrx-"+name, &Outcome{})
}

func (u *unitFiles) unswitch() error {
	_, err := u.h.Unswitch(u.Context(), modelUnit)
	return err
}

// snapshot is the folder's names and bytes.
func (u *unitFiles) snapshot() map[string]string {
	u.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(u.files().dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		u.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(u.files().path(e.Name()))
		if err != nil {
			u.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}
