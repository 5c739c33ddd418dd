package claim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// brood starts what would outlive a careless runner: children that ignore SIGTERM, one that left its group and its
// parent, and, where the claim adopts, one that cleared its environment too. NUMBER tells them from those of others;
// the last thing it does is to make the file BEGUN.
const brood = `
trap "" TERM HUP INT
sleep 1NUMBER & (sleep 2NUMBER &)
(setsid sh -c 'trap "" TERM HUP; sleep 3NUMBER & sleep 4NUMBER' &)
CLEARED
: >BEGUN
`

const cleared = `(env -i setsid sh -c 'trap "" TERM; sleep 5NUMBER & exec sleep 6NUMBER' &)`

// broodOf is a brood of its own, and what its processes have in their command lines.
func broodOf(dir, number, more string) (script, begun string, sleeps *regexp.Regexp) {
	begun = filepath.Join(dir, "begun"+number)
	return strings.NewReplacer("NUMBER", number, "BEGUN", begun).Replace(strings.Replace(brood, "CLEARED", more, 1)), begun, regexp.MustCompile(`^sleep\x00[1-6]` + number + `\x00$`)
}

// alive counts the processes of a brood that are not dead.
func alive(sleeps *regexp.Regexp) (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if b, _ := os.ReadFile(path); sleeps.Match(b) { // the dead have none
			n++
		}
	}
	return n
}

// ownNumber is a number of seconds that no other process sleeps.
func ownNumber(n int) string { return fmt.Sprintf("%07d%02d", os.Getpid(), n) }

// What a command leaves behind when it ends is named, ended and gone when the lock is let go.
func TestNothingIsLeftBehind(t *testing.T) {
	for i, test := range []struct {
		what, end string
		limit     time.Duration
		signals   []os.Signal
		code      int
		left      bool
	}{
		{"it ends", "exit 7", time.Minute, nil, 7, true},
		{"its time is over", "wait; sleep 60", 300 * time.Millisecond, []os.Signal{syscall.SIGTERM}, 124, false},
		{"it is told to end twice", "wait; sleep 60", time.Minute, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, 137, false},
	} {
		dir := t.TempDir()
		script, begun, sleeps := broodOf(dir, ownNumber(i), cleared)
		c := claimOrder{Lock: filepath.Join(dir, "lock"), Label: test.what, Script: script + test.end, Limit: test.limit, Grace: 300 * time.Millisecond, Notes: filepath.Join(dir, "notes"), History: filepath.Join(dir, HistoryFile)}
		cmd := claimer(t, c)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "the brood", func() bool { return exists(begun)() || ended(cmd) })
		if test.limit < time.Minute {
			until(t, "the end of its time", func() bool { return strings.Contains(read(c.Notes), "is over") })
		}
		for _, s := range test.signals {
			cmd.Process.Signal(s)
		}
		err := cmd.Wait()
		if n := alive(sleeps); n > 0 {
			t.Errorf("%s: %d processes are left", test.what, n)
		}
		if got := cmd.ProcessState.ExitCode(); got != test.code || !isFree(Lock{Path: c.Lock}) || read(c.Lock) != "" {
			t.Errorf("%s: %v, %d: %s; the lock holds %q", test.what, err, got, stderr.String(), read(c.Lock))
		}
		notes := read(c.Notes)
		for n := range 6 {
			if name := fmt.Sprintf("(sleep %d%s)", n+1, ownNumber(i)); strings.Contains(notes, name) != test.left {
				t.Errorf("%s: %s is named: %v, want %v, in\n%s", test.what, name, !test.left, test.left, notes)
			}
		}
	}
}

// A claim that is killed leaves nothing behind, and its lock is free when nothing is left and not before.
func TestKilledClaim(t *testing.T) {
	dir := t.TempDir()
	script, begun, sleeps := broodOf(dir, ownNumber(50), "")
	c := claimOrder{Lock: filepath.Join(dir, "lock"), Label: "killed", Script: script + "wait", Notes: filepath.Join(dir, "notes"), History: filepath.Join(dir, HistoryFile)}
	cmd := claimer(t, c)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the brood", exists(begun))
	until(t, "all of it", func() bool { return alive(sleeps) == 4 })
	cmd.Process.Kill()
	// The lock is the next one's at the moment at which it is free.
	h, err := Lock{Path: c.Lock}.take(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if n := alive(sleeps); n > 0 {
		t.Errorf("the lock is free and %d processes are left", n)
	}
	h.release()
	cmd.Wait()
	list, err := ReadHistory(c.History, time.Time{}, time.Now())
	if err != nil || len(list) != 1 || list[0].Ended == nil || list[0].How != "1bit claim run was killed" || read(c.Lock) != "" {
		t.Errorf("history %+v, %v; the lock holds %q", list, err, read(c.Lock))
	}
}

// The last part of a pipe has the time to finish.
func TestLastPartOfAPipe(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	o := options(t, `(sleep 0.2; echo all >"$1") & exit 0`)
	o.Args = append(o.Args, "sh", out)
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Left) > 0 || read(out) != "all\n" {
		t.Errorf("%+v, %v, wrote %q", r, err, read(out))
	}
}

// A signal to the claim is the command's, and its exit status ours.
func TestSignalsReachTheCommand(t *testing.T) {
	for _, test := range []struct {
		trap   string
		signal syscall.Signal
		code   int
		how    string
	}{
		{"", syscall.SIGTERM, 143, "signal 15 (terminated)"},
		{"", syscall.SIGINT, 130, "signal 2 (interrupt)"},
		{"trap 'exit 5' INT", syscall.SIGINT, 5, "signal 2 (interrupt)"},
		{"trap 'exit 0' TERM", syscall.SIGTERM, 0, "signal 15 (terminated)"},
	} {
		dir := t.TempDir()
		c := claimOrder{Lock: filepath.Join(dir, "lock"), Label: "signals", Script: test.trap + "\n: >" + dir + "/begun; while :; do sleep 0.05; done", History: filepath.Join(dir, HistoryFile)}
		cmd := claimer(t, c)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "the command", exists(dir+"/begun"))
		cmd.Process.Signal(test.signal)
		cmd.Wait()
		list, _ := ReadHistory(c.History, time.Time{}, time.Now())
		if got := cmd.ProcessState.ExitCode(); got != test.code || len(list) != 1 || list[0].How != test.how {
			t.Errorf("%v with %q: exit status %d, %+v", test.signal, test.trap, got, list)
		}
	}
}
