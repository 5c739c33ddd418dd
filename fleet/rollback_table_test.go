package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
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
	if err := u.session().disarm(u.Context(), "it failed", &Outcome{}); errors.Is(err, errNowhere) {
		u.live = ""
		return
	} else if err != nil {
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

// Every transition of the table in the package's comment: what is armed after each act, and what is blocked then.
// An act is a word: +x switches to x and it serves, x only arms it, !x switches to x, which fails; <, <<, > are a
// rollback, one with --again and one with --undo; -x unblocks, 0 unswitches. What follows the colon is what is
// armed and, after a slash, blocked; "no" says that it is refused and "=" that it changes nothing.
func TestRollbackTransitions(t *testing.T) {
	for name, script := range map[string]string{
		"a first switch":                  "b:b <:a/b <:= >:b/ >:= <:a/b >:b +b:b <:a/b",
		"a first switch that failed":      "!b:a/b <:= <<:no >:b/ <:a/b",
		"nothing further than the first":  "+b:b <<:no <:a/b <<:no",
		"switches, back and forward":      "+b:b +c:c <:b/c >:c/ <:b/c <<:a/bc >:b/c >:c/",
		"one further at once":             "+b:b +c:c <<:a/c >:c/ <:b/c",
		"one further, served long before": "+b:b +c:c +d:d <<:b/d >:d/ <:c/d <<:b/cd >:c/d >:d/ >:=",
		"again after an undone one":       "+b:b +c:c +d:d <:c/d <<:b/cd >:c/d <<:b/cd <<:a/bcd >:b/cd >:c/d",
		"armed and never served":          "+b:b c:c d:d <:b/d >:d/ <<:a/d",
		"back to what served, and back":   "+b:b +c:c +b:b <:c/b <<:a/bc",
		"the other way round":             "+b:b +c:c b:b <<:a/b >:b/ <:c/b",
		"after a return":                  "+b:b !c:b/c >:c/ <:b/c",
		"after a return, further":         "+b:b +c:c !d:c/d <<:a/cd >:c/d",
		"after a return, back":            "+b:b +c:c !d:c/d <:b/cd <<:a/bcd >:b/cd >:c/d",
		"the return from a return":        "+b:b +c:c !d:c/d !e:c/de >:e/d <:c/de",
		"a return forgets what failed":    "+b:b +c:c !b:c/b <:a/bc",
		"unblocked":                       "+b:b c:c <:b/c -c:b/ >:c/ <:b/c -c:b/ c:c <:b/c",
		"unblocked, put away":             "b:b <:a/b -b:a/ >:b/ <:a/b",
		"unblocked beside another":        "!b:a/b +c:c/b <:a/bc -c:a/b c:c/b <:a/bc -b:a/c",
		"another's block and an undo":     "+b:b !c:b/c d:d/c <:b/cd -c:b/d >:d/ <:b/d",
		"a blocked one is no target":      "+b:b +c:c <:b/c d:d/c <:b/cd",
		"unswitched":                      "+b:b c:c <:b/c 0:a b:b <:a/b 0:a",
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnitFiles(t, "a", "b", "c", "d", "e")
			for i, step := range strings.Fields(script) {
				act, want, _ := strings.Cut(step, ":")
				before := u.snapshot()
				err := u.do(act)
				where := fmt.Sprintf("%s, step %d (%s)", name, i+1, step)
				switch {
				case want == "no":
					if !errors.Is(err, ErrRefused) {
						t.Errorf("%s: %v, want a refusal", where, err)
					}
				case err != nil:
					t.Fatalf("%s: %v", where, err)
				}
				if want == "no" || want == "=" {
					if !maps.Equal(u.snapshot(), before) {
						t.Errorf("%s changed the files", where)
					}
					continue
				}
				armed, blocks, said := strings.Cut(want, "/")
				if got := u.armed(); got != armed {
					t.Fatalf("%s: %s is armed", where, got)
				}
				if got := strings.Join(u.blocked(), ""); said && got != blocks {
					t.Errorf("%s: blocked %q", where, got)
				}
			}
		})
	}
}

// do is one word of a script.
func (u *unitFiles) do(act string) error {
	u.Helper()
	var err error
	switch {
	case act == "<":
		_, err = u.rollback(RollbackOptions{})
	case act == "<<":
		_, err = u.rollback(RollbackOptions{Again: true})
	case act == ">":
		_, err = u.rollback(RollbackOptions{Undo: true})
	case act == "0":
		if err = u.unswitch(); err == nil && len(u.snapshot()) > 0 {
			u.Errorf("unswitch left %v", u.snapshot())
		}
	case act[0] == '-':
		err = u.unblock(act[1:])
	case act[0] == '+', act[0] == '!':
		if err = u.switchTo(act[1:]); err == nil {
			u.restart(act[0] == '+')
		}
	default:
		err = u.switchTo(act)
	}
	return err
}

// A target that is damaged is refused, with a command that works in its place.
func TestRollbackOffers(t *testing.T) {
	u := newUnitFiles(t, "a", "b", "c")
	for _, act := range []string{"+b", "c"} {
		if err := u.do(act); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(u.ref("b").Path); err != nil {
		t.Fatal(err)
	}
	_, err := u.rollback(RollbackOptions{})
	if !errors.Is(err, packager.ErrIntegrity) || !strings.Contains(err.Error(), "1bit pkg rollback --again llm.service") {
		t.Errorf("rollback to a package that is gone: %v", err)
	}
	if out, err := u.rollback(RollbackOptions{Again: true}); err != nil || u.armed() != "a" || out.Loaded {
		t.Errorf("what was offered: %v, %s is armed", err, u.armed())
	}
	if err := os.RemoveAll(u.ref("c").Path); err != nil {
		t.Fatal(err)
	}
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, packager.ErrIntegrity) || strings.Contains(err.Error(), "--again") {
		t.Errorf("undo to a package that is gone: %v", err)
	}
}

// A reason stands in the block.
func TestRollbackReason(t *testing.T) {
	for _, acts := range [][]string{{"+b", "c"}, {"c"}, {"+b", "+d", "c"}} {
		for _, again := range []bool{false, true} {
			u := newUnitFiles(t, "a", "b", "c", "d")
			for _, act := range acts {
				if err := u.do(act); err != nil {
					t.Fatal(err)
				}
			}
			if again && len(acts) == 1 {
				continue
			}
			if _, err := u.rollback(RollbackOptions{Again: again, Reason: `wrong "tokens" in Greek`}); err != nil {
				t.Fatal(err)
			}
			if b, ok := blocked(u.view().blocks(), u.ref("c")); !ok || b.Reason != `wrong "tokens" in Greek` {
				t.Errorf("%v, again %v: blocks %v", acts, again, u.view().blocks())
			}
		}
	}
}

// A block names a build by its digest: the same build imported again stays blocked, another of that name does not.
func TestBlockByDigest(t *testing.T) {
	d := ourFile("b", "a", rollbackRemove)
	d.block(ref("c"), "bad")
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v := &view{}
	if err := v.readPair(folder(t, map[string][]byte{dropInName: data})); err != nil {
		t.Fatal(err)
	}
	again, other := ref("c"), ref("c")
	again.Path, other.Digest = "/elsewhere/1bit-hrx-c", "sha256:other"
	if _, is := blocked(v.blocks(), again); !is {
		t.Error("the same build, imported again elsewhere, is not blocked")
	}
	if _, is := blocked(v.blocks(), other); is {
		t.Error("another build of that name is blocked")
	}
}

// A removal of packages holds a rollback up for a moment only. An undo goes to a package that no file of the unit
// keeps from being removed, and has to wait.
func TestRollbackWhileTheStoreIsLocked(t *testing.T) {
	u := newUnitFiles(t, "a", "b", "c")
	for _, act := range []string{"+b", "c"} {
		if err := u.do(act); err != nil {
			t.Fatal(err)
		}
	}
	lock := func(name string) func() {
		t.Helper()
		f, err := os.Open(name)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { f.Close() }
	}
	if err := os.WriteFile(filepath.Join(u.h.StateDir, "store.lock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	free := lock(filepath.Join(u.h.StateDir, "store.lock"))
	out, err := u.rollback(RollbackOptions{})
	if err != nil || u.armed() != "b" || !strings.Contains(strings.Join(out.Notes, "\n"), "the store is not locked meanwhile") {
		t.Errorf("rollback: %v, %s is armed", err, u.armed())
	}
	files := u.snapshot()
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, store.ErrBusy) || !maps.Equal(u.snapshot(), files) {
		t.Errorf("undo: %v", err)
	}
	free()
	// A command that hangs with the unit's lock ends it after a while.
	u.h.LockWait = 20 * time.Millisecond
	free = lock(u.files().dir)
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, ErrBusy) || !maps.Equal(u.snapshot(), files) {
		t.Errorf("undo while another command works on the unit: %v", err)
	}
	free()
	if _, err := u.rollback(RollbackOptions{Undo: true}); err != nil || u.armed() != "c" {
		t.Errorf("undo: %v, %s is armed", err, u.armed())
	}
}

// The owner is asked with what would change, and not where nothing does.
func TestRollbackAsks(t *testing.T) {
	u := newUnitFiles(t, "a", "b", "c")
	for _, act := range []string{"+b", "c"} {
		if err := u.do(act); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	answer := error(nil)
	u.h.Authorise = func(act string, notes []string) error {
		asked = append(asked, act+"; "+strings.Join(notes, "; "))
		return answer
	}
	for _, tt := range []struct {
		opts RollbackOptions
		want string
	}{
		{RollbackOptions{Undo: true}, ""},
		{RollbackOptions{}, "roll back llm.service; it goes from hrx-c to hrx-b, and hrx-c is blocked for it"},
		{RollbackOptions{}, ""},
		{RollbackOptions{Undo: true}, "undo the rollback of llm.service; it goes from hrx-b to hrx-c, whose block is lifted"},
		{RollbackOptions{Again: true}, "roll back llm.service one further; it goes from hrx-c to hrx-a, and hrx-c is blocked for it"},
		{RollbackOptions{Again: true}, ""},
	} {
		asked = nil
		if _, err := u.rollback(tt.opts); err != nil && !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		if got := strings.Join(asked, "|"); got != tt.want {
			t.Errorf("%+v: asked %q, want %q", tt.opts, got, tt.want)
		}
	}
	answer = fmt.Errorf("%w: the owner said no", ErrRefused)
	files := u.snapshot()
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, ErrRefused) || !maps.Equal(u.snapshot(), files) {
		t.Errorf("against the owner: %v", err)
	}
	// While he thinks, another command moves the unit.
	u.h.Authorise = nil
	if _, err := u.rollback(RollbackOptions{Undo: true}); err != nil {
		t.Fatal(err)
	}
	u.h.Authorise = func(string, []string) error {
		other := *u.h
		other.Authorise = nil
		_, err := other.Rollback(t.Context(), modelUnit, RollbackOptions{Again: true})
		return err
	}
	if _, err := u.rollback(RollbackOptions{}); !errors.Is(err, ErrRefused) || u.armed() != "a" {
		t.Errorf("moved meanwhile: %v, %s is armed", err, u.armed())
	}
}
