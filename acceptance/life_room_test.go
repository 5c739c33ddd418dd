package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A server that writes too much is ended, for a cause of its own.
func TestServerThatFloodsItsLog(t *testing.T) {
	p := fakePackage(t, "works")
	launcher := filepath.Join(p.Path, "llama-server")
	script, err := os.ReadFile(launcher)
	if err != nil {
		t.Fatal(err)
	}
	flood := "yes 'slot launch_slot_: id  0 | task 1 | processing task' | head -c 4M >&2 &\nexec "
	writeScript(t, launcher, strings.Replace(string(script), "exec ", flood, 1))
	l := begun(t, RunOptions{Plan: fakePlan(t, p, "", "load: {requests: 50000, prompt_tokens: [24], n_predict: [20]}\n"), Package: p})
	l.room.log = 1 << 20
	if err := l.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, p.Path)
	l.ledger.sync()
	v, err := JudgeDir(l.o.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	if v.Arms.Invalid != 1 || !strings.HasPrefix(v.ArmStates[0].Detail, "server-log was 0.00") {
		t.Errorf("%+v", v.ArmStates)
	}
}

// begun is the first life of a run, as it is before it runs.
func begun(t *testing.T, o RunOptions) *life {
	t.Helper()
	o.Evidence = filepath.Join(t.TempDir(), "evidence")
	o = o.withDefaults()
	r, err := resolve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := beginRun(o, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.hold.Close() })
	next, start := w.next()
	l, err := newLife(w, *next, start)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRoom(t *testing.T) {
	const plenty = 1 << 60
	for want, limits := range map[string]room{
		"":             {unread: plenty, log: plenty, free: 1},
		watchLogUnread: {unread: 10, log: plenty, free: 1},
		watchLogSize:   {unread: plenty, log: 10, free: 1},
		watchDisk:      {unread: plenty, log: plenty, free: plenty},
	} {
		t.Run(fmt.Sprintf("%q", want), func(t *testing.T) {
			p := fakePackage(t, "works")
			l := begun(t, RunOptions{Plan: fakePlan(t, p, "", ""), Package: p, Now: time.Now})
			l.dir = t.TempDir()
			path := filepath.Join(l.dir, ServerLogName)
			if err := os.WriteFile(path, make([]byte, 11), 0o644); err != nil {
				t.Fatal(err)
			}
			l.log = newLogWatch(path, 4, l.us, l.line)
			l.room = limits
			l.room.measure(l.dir)
			l.roomLeft()
			if got := l.detail; want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("the life ends for %q, want %q", got, want)
			}
			if l.room.short != (want != "") {
				t.Errorf("short %v", l.room.short)
			}
		})
	}
}
