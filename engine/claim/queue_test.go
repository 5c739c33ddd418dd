package claim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Twenty claims are served in the order in which they came, whoever of them is killed while it waits or runs, and never
// two at once.
func TestTurns(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	lock := Lock{Path: filepath.Join(dir, "lock")}
	served := filepath.Join(dir, "served")
	begun := filepath.Join(dir, "begun")
	first := exec.Command("flock", lock.Path, "sh", "-c", `: >"$1"; read x`, "sh", begun)
	end, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first holder", exists(begun))

	const claims = 20
	var all []*exec.Cmd
	var want []string
	doomed := map[int]bool{}
	for _, n := range random.Perm(claims)[:6] {
		doomed[n] = true
	}
	for n := range claims {
		// Two at once would find the folder of the other.
		script := fmt.Sprintf(`mkdir %[1]s/alone || echo two at once >>%[2]s; echo %[3]d >>%[2]s; rmdir %[1]s/alone`, dir, served, n)
		all = append(all, claimer(t, claimOrder{Lock: lock.Path, Label: fmt.Sprint(n), Script: script}))
		if err := all[n].Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "its place in the queue", func() bool {
			waiting, err := lock.Waiting()
			return err == nil && slices.ContainsFunc(waiting, func(r Record) bool { return r.Label == fmt.Sprint(n) })
		})
		// One that came before is killed now and then, also the one whose turn it is next.
		for victim := range doomed {
			if victim < n && random.IntN(3) == 0 {
				all[victim].Process.Kill()
				all[victim].Wait()
				delete(doomed, victim)
				all[victim] = nil
			}
		}
	}
	for victim := range doomed { // the rest while the first ones run
		if victim > claims/2 {
			continue
		}
		all[victim].Process.Kill()
		all[victim].Wait()
		all[victim] = nil
		delete(doomed, victim)
	}
	waiting, err := lock.Waiting()
	if err != nil {
		t.Fatal(err)
	}
	for n, cmd := range all {
		if cmd != nil {
			want = append(want, fmt.Sprint(n))
		}
	}
	var labels []string
	for _, r := range waiting {
		labels = append(labels, r.Label)
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("who waits (-want +got):\n%s", diff)
	}
	end.Close()
	first.Wait()
	for n, cmd := range all {
		if cmd != nil && doomed[n] {
			cmd.Process.Kill() // whether it has run yet is its luck
		}
	}
	for n, cmd := range all {
		if cmd == nil {
			continue
		}
		if err := cmd.Wait(); err != nil && !doomed[n] {
			t.Errorf("claim %d: %v", n, err)
		}
	}
	got := strings.Fields(read(served))
	for n := range doomed {
		if !slices.Contains(got, fmt.Sprint(n)) {
			want = slices.DeleteFunc(want, func(s string) bool { return s == fmt.Sprint(n) })
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	if !isFree(lock) {
		t.Error("the lock is held")
	}
	// Whoever comes next tidies up what the dead have left.
	ticket, err := lock.enter(t.Context(), Record{Label: "last", PID: os.Getpid()})
	if err != nil || !lock.first(ticket) || len(lock.names()) != 1 {
		t.Errorf("%v, queue %v", err, lock.names())
	}
	second, err := lock.enter(t.Context(), Record{Label: "after the last", PID: os.Getpid()})
	if err != nil || lock.first(second) || !lock.first(ticket) {
		t.Errorf("%v, queue %v: who came last is first", err, lock.names())
	}
	lock.leave(ticket)
	if !lock.first(second) {
		t.Errorf("nobody is first in %v", lock.names())
	}
	lock.leave(second)
	if list := lock.names(); len(list) > 0 {
		t.Errorf("left in the queue: %v", list)
	}
}

// Where the queue cannot be made, claims still exclude each other.
func TestNoQueue(t *testing.T) {
	o := options(t, "exit 4")
	write(t, o.Lock.queue(), "this is no folder")
	begun := filepath.Join(t.TempDir(), "begun")
	other := exec.Command("flock", o.Lock.Path, "sh", "-c", `: >"$1"; read x`, "sh", begun)
	end, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the other tool", exists(begun))
	noted := ""
	o.Note = func(format string, args ...any) { noted = fmt.Sprintf(format, args...); end.Close() }
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 4 || !strings.Contains(noted, "do not take turns") {
		t.Errorf("%+v, %v, noted %q", r, err, noted)
	}
	other.Wait()
}
