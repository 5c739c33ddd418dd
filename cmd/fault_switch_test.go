package cmd_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/1bit-systems/pkg/internal/faultrun"
	"github.com/1bit-systems/pkg/internal/testhost"
)

// faultInside tells this test binary that it runs inside the host, and where the tools are.
const faultInside = "ONEBIT_FAULT_INSIDE"

// TestFaults runs the tests of services inside a host with a real systemd: this same binary, once as the user and
// once as root, at the same time.
func TestFaults(t *testing.T) {
	if dir := os.Getenv(faultInside); dir != "" {
		runFaults(t, dir)
		return
	}
	host := testhost.Require(t)
	built := requireTools(t)
	dir := t.TempDir()
	archives := buildPackages(t, built.program, built.fakeengine, t.TempDir(), "aaaaaaa", "bbbbbbb", "ccccccc")
	archives = append(archives, buildPackages(t, built.program, brokenServer(t), t.TempDir(), "ddddddd")...)
	for _, path := range append(archives, built.program, built.faultrun, built.fakeengine) {
		mustRun(t, "cp", path, dir)
	}
	mustRun(t, "chmod", "-R", "a+rX", dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside, err := host.Bring(dir)
	if err != nil {
		t.Fatal(err)
	}
	program, err := host.Bring(self)
	if err != nil {
		t.Fatal(err)
	}
	run := "^TestFaults$"
	if asked := testRun(); strings.Contains(asked, "TestFaults/") {
		run = asked
	}
	// Another test of this host may have made the folder of the settings as root.
	if _, err := host.Run(t.Context(), "root", "sh", "-c", "mkdir -p $0/.config && chown -R $1: $0/.config", host.Home, host.User); err != nil {
		t.Fatal(err)
	}
	root := host.Command(t.Context(), "root", "sh", "-c", reviveManager(host.UID))
	if err := root.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Cancel(); _ = root.Wait() }()
	var both sync.WaitGroup
	for _, user := range []string{host.User, "root"} {
		both.Go(func() {
			cmd := host.Command(context.Background(), user, program, "-test.run="+run, "-test.v", "-test.timeout=12m")
			cmd.Env = append(cmd.Env, faultInside+"="+inside)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err := cmd.Run()
			for line := range strings.Lines(out.String()) {
				if err != nil || testing.Verbose() {
					t.Logf("%s: %s", user, strings.TrimRight(line, "\n"))
				}
			}
			if err != nil {
				t.Errorf("inside as %s: %v", user, err)
			} else if !strings.Contains(out.String(), "--- PASS: TestFaults") {
				t.Errorf("nothing ran inside as %s", user)
			}
		})
	}
	both.Wait()
}

func runFaults(t *testing.T, dir string) {
	tools := tools{filepath.Join(dir, "1bit"), filepath.Join(dir, "faultrun"), filepath.Join(dir, "fakeengine")}
	l := newLane(t, tools, dir, "walked")
	if os.Getuid() != 0 {
		broken, err := filepath.Glob(filepath.Join(dir, "*ddddddd*.tar.zst"))
		if err != nil || len(broken) != 1 {
			t.Fatal(broken, err)
		}
		t.Run("together", func(t *testing.T) { testTogether(t, l, broken[0]) })
		t.Run("locks", func(t *testing.T) { testLocks(t, l) })
	} else {
		t.Run("disks", func(t *testing.T) { testDisks(t, l) })
		t.Run("torn", func(t *testing.T) { testTorn(t, l) })
	}
	for _, a := range faultActs {
		if a.root == (os.Getuid() == 0) { // what the two managers have in common is walked once
			t.Run(a.name, func(t *testing.T) { l.in(t).walk(a) })
		}
	}
	if os.Getuid() != 0 {
		t.Run("the manager dies", func(t *testing.T) { testManagerDies(t, l) })
	}
}

func (l *lane) in(t *testing.T) *lane {
	other := *l
	other.T = t
	return &other
}

// An act is disturbed at every point that it comes to.
type faultAct struct {
	name     string
	root     bool        // it is walked with the system's manager, not with the user's
	before   func(*lane) // from a unit that runs aaaaaaa without a file of ours
	args     []string
	exit     int    // of the undisturbed run
	from, to string // what is armed before and after
	again    []int  // how the act may end when it is done once more after the disturbance; 0 always may
	once     bool   // done once more it does something else
	brief    bool   // not each sync of it is needed: one removal follows another
	shared   bool   // another act writes the same way: cut off at every fourth point only
	failing  bool   // its disk not only fills, it also fails: shown where it is the first to write in its way
	// check looks for more, after the next command; done tells whether the act has happened.
	check func(l *lane, where string, st laneStatus, done bool)
}

// The services of the acts.
func onB(l *lane)        { l.must("pkg", "switch", l.unit, "bbbbbbb"); l.serve() }
func onBArmedC(l *lane)  { onB(l); l.must("pkg", "switch", l.unit, "ccccccc") }
func rolledBack(l *lane) { onBArmedC(l); l.must("pkg", "rollback", l.unit) }
func adopted(l *lane)    { handWritten(l); l.must("pkg", "adopt", l.unit) }
func held(l *lane)       { onBArmedC(l); l.must("pkg", "hold", l.unit, "--reason", "the week's run") }

// handWritten gives the unit a drop-in as owners write them.
func handWritten(l *lane) {
	writeTree(l.T, map[string]string{filepath.Join(l.dropIns(), "hrx.conf"): ownersDropIn(l)})
	l.reload()
}

func ownersDropIn(l *lane) string {
	return "# mine\n[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=" + l.dir + "/data/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server\nNice=1\n"
}

// blocksIff is a check that a package is blocked if and only if the act has happened, or has not.
func blocksIff(id string, wanted bool) func(*lane, string, laneStatus, bool) {
	return func(l *lane, where string, st laneStatus, done bool) {
		l.Helper()
		if st.blocks(id) != (done == wanted) {
			l.Errorf("%s: done is %v, blocked are %v", where, done, st.Blocked)
		}
	}
}

// keepsOwners is a check that the owner's drop-in is as it was.
func keepsOwners(l *lane, where string, _ laneStatus, _ bool) {
	l.Helper()
	if got := l.keep()[filepath.Join(l.dropIns(), "hrx.conf")]; got != "file "+ownersDropIn(l) {
		l.Errorf("%s: the owner's drop-in is now %q", where, got)
	}
}

var faultActs = []faultAct{
	{name: "first switch", failing: true, before: func(*lane) {}, args: []string{"switch", "UNIT", "bbbbbbb"}, from: "aaaaaaa", to: "bbbbbbb"},
	{
		name: "switch", brief: true, failing: true, before: func(l *lane) {
			onB(l)
			l.must("pkg", "switch", l.unit, "ddddddd")
			l.must("pkg", "rollback", l.unit)
		},
		args: []string{"switch", "UNIT", "ccccccc"}, from: "bbbbbbb", to: "ccccccc",
		check: func(l *lane, where string, st laneStatus, _ bool) {
			if !st.blocks("ddddddd") {
				l.Errorf("%s: the block is lost", where)
			}
		},
	},
	{
		name: "rollback", failing: true, before: held, args: []string{"rollback", "UNIT"}, from: "ccccccc", to: "bbbbbbb",
		check: func(l *lane, where string, st laneStatus, done bool) {
			blocksIff("ccccccc", true)(l, where, st, done)
			if st.Held == nil {
				l.Errorf("%s: the hold is lost", where)
			}
		},
	},
	{
		name: "rollback of a first switch", root: true, shared: true, before: func(l *lane) { l.must("pkg", "switch", l.unit, "bbbbbbb") },
		args: []string{"rollback", "UNIT"}, from: "bbbbbbb", to: "aaaaaaa", check: blocksIff("bbbbbbb", true),
	},
	{
		name: "undo", root: true, failing: true, before: rolledBack, args: []string{"rollback", "UNIT", "--undo"}, from: "bbbbbbb", to: "ccccccc",
		check: blocksIff("ccccccc", false),
	},
	{
		name: "again", root: true, shared: true, brief: true, before: func(l *lane) {
			onBArmedC(l)
			l.serve()
			l.must("pkg", "switch", l.unit, "aaaaaaa")
			l.serve()
		},
		args: []string{"rollback", "UNIT", "--again"}, from: "aaaaaaa", to: "bbbbbbb", once: true, check: blocksIff("aaaaaaa", true),
	},
	{
		name: "unadopt", root: true, brief: true, shared: true, before: adopted, args: []string{"unadopt", "UNIT"}, from: "aaaaaaa", to: "aaaaaaa",
		again: []int{4}, check: keepsOwners,
	},
	{name: "unswitch", root: true, brief: true, shared: true, before: rolledBack, args: []string{"unswitch", "UNIT"}, from: "bbbbbbb", to: "aaaaaaa"},
	{name: "unblock", shared: true, root: true, before: rolledBack, args: []string{"unblock", "UNIT", "hrx-ccccccc"}, from: "bbbbbbb", to: "bbbbbbb", again: []int{3}},
	{
		name: "hold", shared: true, root: true, before: onBArmedC, args: []string{"hold", "UNIT", "--reason", "the week's run"}, from: "ccccccc", to: "ccccccc",
	},
	{name: "unhold", shared: true, root: true, before: held, args: []string{"unhold", "UNIT"}, from: "ccccccc", to: "ccccccc", again: []int{3}},
	{
		name: "adopt", shared: true, before: handWritten, args: []string{"adopt", "UNIT"}, from: "aaaaaaa", to: "aaaaaaa", check: keepsOwners,
	},
	{name: "propose", shared: true, before: onB, args: []string{"propose", "UNIT", "ccccccc"}, from: "bbbbbbb", to: "bbbbbbb"},
	{
		name: "switch to what is proposed", root: true, shared: true, before: func(l *lane) { onB(l); l.must("pkg", "propose", l.unit, "ccccccc") },
		args: []string{"switch", "UNIT"}, from: "bbbbbbb", to: "ccccccc", once: true,
	},
	{name: "restart", root: true, shared: true, before: onBArmedC, args: []string{"restart", "UNIT", "--watch", "0s"}, from: "ccccccc", to: "ccccccc"},
	{
		name: "restart that fails", shared: true, before: func(l *lane) { onB(l); l.must("pkg", "switch", l.unit, "ddddddd") },
		args: []string{"restart", "UNIT", "--watch", "0s"}, exit: 1, from: "ddddddd", to: "bbbbbbb",
	},
}

// brokenServer is a server that says its version and cannot serve.
func brokenServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "llama-server")
	writeTree(t, map[string]string{path: "#!/bin/sh\n[ \"$1\" = --version ]\n"})
	return path
}

// A point of an act, and what is to happen there.
type faultPoint struct {
	where string
	args  []string
}

// points are where an act is disturbed, from its undisturbed run.
func points(calls []faultrun.Call, failing bool) []faultPoint {
	keys := faultrun.Keys(calls)
	var out []faultPoint
	begun := 0 // where a conversation began
	add := func(i int, name string, args ...string) {
		out = append(out, faultPoint{name + " at " + keys[i], append([]string{"-key", keys[i]}, args...)})
	}
	for i, c := range calls {
		if !c.Socket {
			for _, d := range disturbances {
				if possible(d.name, c) && (failing || d.name != "EIO" && !within(c)) {
					add(i, d.name, d.args...)
				}
			}
			begun = i + 1
			continue
		}
		// Between two messages of one conversation nothing changes on disk, so its two ends stand for it.
		first, last := i == begun, i == len(calls)-1 || !calls[i+1].Socket
		if first || last {
			add(i, "SIGKILL", "-kill")
		}
		if c.Peer == "" {
			continue // it talks to the service
		}
		if first {
			add(i, "hangup", "-hangup")
		}
		if first || last {
			add(i, "hangup after", "-hangup", "-sent")
		}
	}
	return out
}

// within tells whether a call is one of a temporary file's own, after it was written and before it is renamed: nobody
// looks into such a file.
func within(c faultrun.Call) bool {
	return strings.HasSuffix(c.Path, ".tmp") && (c.Name == "fsync" || c.Name == "fchmod")
}

// possible tells whether a disk can do that to a call.
func possible(disturbance string, c faultrun.Call) bool {
	switch c.Name {
	case "openat":
		return disturbance != "EIO"
	case "unlinkat", "fchmod":
		return disturbance != "ENOSPC"
	}
	return true
}

// walk disturbs the act at each of its points. Whatever happens there, the next command leaves the old state or the
// new one, status says which, the service starts on it, nothing is left over, and the act can be done again.
func (l *lane) walk(a faultAct) {
	args := []string{"pkg"}
	for _, arg := range a.args {
		args = append(args, strings.ReplaceAll(arg, "UNIT", l.unit))
	}
	l.must("pkg", "unswitch", l.unit)
	l.serve()
	a.before(l)
	before := l.keep()
	quiet, text := l.disturbed(nil, args...)
	if quiet.Exit != a.exit {
		l.Fatalf("undisturbed it ended with %d: %s", quiet.Exit, text)
	}
	if got := l.status("undisturbed").armed(); got != "hrx-"+a.to {
		l.Fatalf("undisturbed it arms %s", got)
	}
	if roots := []string{l.dir, l.unitDir}; !a.brief {
		wantEverySyncNeeded(l.T, quiet.Calls, roots)
	} else if problems := faultrun.CheckDurable(quiet.Calls, roots); len(problems) > 0 {
		l.Error(problems)
	}
	all, missed := points(quiet.Calls, a.failing), 0
	if len(all) < 15 {
		l.Errorf("%d points: the run was not seen whole", len(all))
	}
	few := 10 // one in so many may not be reached
	if a.shared {
		kept := 0
		few = 4
		all = slices.DeleteFunc(all, func(p faultPoint) bool {
			kept++
			return kept%4 != 1 && (strings.HasPrefix(p.where, "ENOSPC") || strings.HasPrefix(p.where, "SIGKILL"))
		})
	}
	count, seen := map[string]int{}, map[string]bool{}
	for _, p := range all {
		kind, _, _ := strings.Cut(p.where, " at ")
		count[kind]++
		l.restore(before)
		r, text := l.disturbed(p.args, args...)
		if !r.Fired {
			missed++
		}
		l.judge(a, p, r, text, before, args, seen)
		if l.Failed() {
			l.Logf("%s: it ended with %d: %s", p.where, r.Exit, text)
			return
		}
	}
	if missed*few > len(all) {
		l.Errorf("%d points, %d of them not reached: the run was not seen whole", len(all), missed)
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, count[kind]))
	}
	l.Logf("%d points (%s), %d not reached", len(all), strings.Join(kinds, ", "), missed)
}

// judge looks at what a disturbed act left. What was seen before, as the files that the next command has put to rights,
// is not gone on from once more.
func (l *lane) judge(a faultAct, p faultPoint, r faultrun.Result, text string, before kept, args []string, seen map[string]bool) {
	l.Helper()
	untouched := maps.Equal(l.keep(), before)
	st := l.status(p.where)
	now := strings.TrimPrefix(st.armed(), "hrx-")
	switch {
	case now != a.from && now != a.to:
		l.Errorf("%s: %s is armed, neither %s nor %s", p.where, now, a.from, a.to)
	case r.Exit == 0 && now != a.to:
		l.Errorf("%s: exit 0 and %s is armed", p.where, now)
	case r.Exit != 0 && r.Exit != 137 && !strings.Contains(text, "1bit: "):
		l.Errorf("%s: it ended with %d and does not say why: %s", p.where, r.Exit, text)
	}
	if st.OnDisk != nil {
		l.Errorf("%s: %s lies on disk and is not loaded", p.where, st.OnDisk.Package)
	}
	l.wantNoLeftovers(p.where)
	l.chain(p.where, l.unit)
	if a.check != nil {
		a.check(l, p.where, st, a.from != a.to && now == a.to)
	}
	left := fmt.Sprint(st.armed(), " ", r.Exit, "\n", l.keep().kind())
	if untouched || l.Failed() || seen[left] {
		return
	}
	seen[left] = true
	if now != "ddddddd" {
		if got := l.startable(p.where); got != st.armed() {
			l.Errorf("%s: status says %s, the process was started from %s", p.where, st.armed(), got)
		}
	}
	if a.once && now == a.to {
		return
	}
	where := p.where + ", then once more"
	status, out, errs := l.onebit(append([]string{"-o", "json"}, args...)...)
	switch {
	case status == 0 || status == a.exit && a.exit != 0:
		st = l.read(where, out)
	case slices.Contains(a.again, status):
		st = l.status(where)
	default:
		l.Fatalf("%s: it ended with %d: %s", where, status, errs)
	}
	if st.armed() != "hrx-"+a.to || st.OnDisk != nil {
		l.Errorf("%s: %s is armed, on disk is %v: %s", where, st.armed(), st.OnDisk, out)
	}
	l.wantNoLeftovers(where)
	l.chain(where, l.unit)
}
