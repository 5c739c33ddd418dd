package incident

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// frontEnd is how a front end runs from some moment on: its run, its state and the server that it has, 0 for none.
type frontEnd struct {
	from       time.Duration
	invocation string
	state      string
	server     int
}

func (s *scene) frontEnd(lives ...frontEnd) {
	s.running = func(now time.Duration) []fleet.Running {
		r := fleet.Running{Unit: "a.service", State: "inactive"}
		for _, one := range lives {
			if now < one.from {
				break
			}
			r = fleet.Running{Unit: "a.service", Invocation: one.invocation, State: one.state, Boot: s.began.Add(-time.Hour), Main: fleet.Started{PID: 1}}
			if one.server != 0 {
				r.Servers = []fleet.Started{{PID: one.server, Since: time.Hour + one.from}}
			}
		}
		return []fleet.Running{r}
	}
}

func TestWatchSeesServerOfFrontEnd(t *testing.T) {
	const minute = time.Minute
	for _, test := range []struct {
		name  string
		lives []frontEnd
		more  func(*scene)
		want  []string
	}{
		{"another one", []frontEnd{{0, "i", "active", 10}, {minute, "i", "active", 11}}, nil, []string{"a of 000101Z at 1m31s: 1 since 0s"}},
		{"none", []frontEnd{{0, "i", "active", 10}, {minute, "i", "active", 0}}, nil, []string{"a of 000106Z at 1m36s: 1 since 0s"}},
		{"restarted, stopped and started by the owner", []frontEnd{
			{0, "i", "active", 10}, {minute, "j", "active", 11}, {2 * minute, "j", "deactivating", 0}, {3 * minute, "", "inactive", 0}, {4 * minute, "k", "active", 12},
		}, nil, nil},
		{"gone with its front end", []frontEnd{{0, "i", "active", 10}, {minute, "i", "active", 0}, {minute + 4*time.Second, "", "inactive", 0}}, nil, nil},
		{"the first, late", []frontEnd{{0, "i", "activating", 0}, {minute, "i", "active", 11}}, nil, nil},
		{"a core dump, which is told too", []frontEnd{{0, "i", "active", 10}, {minute, "i", "active", 11}}, func(s *scene) {
			s.say(minute+2*time.Second, "a.service", systemd.IDCoredump)
		}, []string{"a of 000102Z at 1m33s: 1 since 0s"}},
		{"and the owner restarts soon after", []frontEnd{{0, "i", "active", 10}, {minute, "i", "active", 11}, {minute + 10*time.Second, "j", "active", 12}}, nil,
			[]string{"a of 000101Z at 1m31s: 1 since 0s"}},
		{"a loop", []frontEnd{
			{0, "i", "active", 10}, {minute, "i", "active", 11}, {minute + 20*time.Second, "i", "active", 12}, {minute + 80*time.Second, "i", "active", 13}, {minute + 100*time.Second, "i", "active", 14},
		}, nil, []string{"a of 000121Z at 1m51s: 2 since 0s", "a of 000241Z at 3m41s: 2 since 1m20s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				s.frontEnd(test.lives...)
				if test.more != nil {
					test.more(s)
				}
				s.watch(10 * minute)
				s.want(test.want...)
			})
		})
	}
}

// Whenever the watch ends and begins anew, the end of a server is reported, and once.
func TestWatchSeesServerOnceOverItsOwnEnds(t *testing.T) {
	for cut := 30 * time.Second; cut < 3*time.Minute; cut += 2300 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			s.frontEnd(frontEnd{0, "i", "active", 10}, frontEnd{time.Minute, "i", "active", 11})
			s.watch(cut)
			time.Sleep(10 * time.Second) // nobody watches
			s.watch(10 * time.Minute)
			if len(s.reports) != 1 {
				t.Errorf("cut at %s: %q", cut, s.reports)
			}
		})
	}
}

// A server that said good-bye was stopped by its front end.
func TestLostServerThatSaidGoodbye(t *testing.T) {
	at := time.Date(2026, 10, 23, 10, 0, 0, 0, time.UTC)
	line := func(after time.Duration, text string) systemd.Entry {
		return systemd.Entry{At: at.Add(after), Boot: "b", Unit: "a.service", Invocation: "i", PID: 10, Identifier: "llama-server", Message: text}
	}
	lost := Lost{PID: 10, Invocation: "i", Began: at, Seen: at.Add(time.Hour), Gone: at.Add(time.Hour + 5*time.Second)}
	e := &Evidence{Unit: "a.service", Lost: []Lost{lost}, Entries: []systemd.Entry{
		line(time.Second, "srv    load_model: initializing, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'"),
	}}
	r := Analyse(e)
	if r.Ending == nil || r.Ending.PID != 10 || r.Ending.At.After(lost.Gone) || r.Ending.At.Before(lost.Seen) {
		t.Errorf("ended as %+v", r.Ending)
	}
	e.Entries = append(e.Entries, line(time.Hour, "srv    operator(): cleaning up before exit..."))
	if r := Analyse(e); r.Ending != nil {
		t.Errorf("ended as %+v", r.Ending)
	}
	if r := Analyse(&Evidence{Unit: "a.service", Lost: []Lost{lost}}); r.Ending == nil || r.Ending.PID != 10 || r.Event == "" {
		t.Errorf("without a log: %+v", r.Ending)
	}
}

// A journal that cannot be read for a while is no empty one.
func TestWatchWaitsForTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.unread = s.began.Add(2 * time.Hour)
		s.crash(time.Minute, "a.service", "11")
		s.watch(3 * time.Hour)
		s.want("a of 000100Z at 2h2m2s: 1 since 1m0s")
	})
}

// A service that its owner removes before the report is made was ours.
func TestWatchReportsWhatIsRemoved(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			s.crash(2*time.Minute, "a.service", "11")
			if again { // and nobody watched
				s.watch(time.Minute)
				time.Sleep(10 * time.Minute)
				s.ours = nil
			} else {
				time.AfterFunc(2*time.Minute+10*time.Second, func() { s.ours = nil })
			}
			s.watch(10 * time.Minute)
			if len(s.reports) != 1 {
				t.Errorf("%q", s.reports)
			}
		})
	}
}

// A report by hand that has the name is no report of the watch's.
func TestWatchPassesOverFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.incidents = t.TempDir()
		s.crash(time.Minute, "a.service", "11")
		taken := filepath.Join(s.incidents, FolderName("a.service", s.began.Add(time.Minute)))
		if err := os.Mkdir(taken, 0o755); err != nil {
			t.Fatal(err)
		}
		s.watch(2 * time.Minute)
		if _, err := Read(taken + "-2"); err != nil || len(s.reports) != 1 {
			t.Errorf("%v: %q", err, s.reports)
		}
	})
}

// A manager that runs only later is watched too.
func TestWatchFindsManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.later = 10 * time.Minute
		s.crash(12*time.Minute, "a.service", "11")
		s.watch(20 * time.Minute)
		if len(s.reports) != 1 {
			t.Errorf("%q", s.reports)
		}
	})
}

// A place that the journal does not know is no reason to watch no longer.
func TestWatchWithoutItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		st := &watchState{Schema: 1, Sources: map[string]sourceState{"user": {Begun: s.began, Cursor: "garbage"}}}
		if err := st.write(s.state); err != nil {
			t.Fatal(err)
		}
		s.crash(time.Minute, "a.service", "11")
		s.watch(2 * time.Minute)
		if len(s.reports) != 1 {
			t.Errorf("%q", s.reports)
		}
	})
}

// A loop has more ends than are listed: how many is said.
func TestReportCountsALoop(t *testing.T) {
	at := time.Date(2026, 10, 23, 10, 0, 0, 0, time.UTC)
	e := &Evidence{Unit: "a.service", Ends: 81}
	for i := range 81 {
		for _, id := range []string{systemd.IDUnitStarted, systemd.IDProcessExited, systemd.IDFailureResult} {
			e.Entries = append(e.Entries, systemd.Entry{
				At: at.Add(time.Duration(i) * time.Minute), Boot: "b", Unit: "a.service", Invocation: fmt.Sprint("i", i), ID: id, Identifier: "systemd",
				Fields: map[string]string{"EXIT_CODE": "killed", "EXIT_STATUS": "11", "UNIT_RESULT": "signal"},
			})
		}
	}
	r := Analyse(e)
	text := r.Markdown()
	if r.Known != 80 || !strings.Contains(text, "has 80 other bad ends of this unit, of which these are the latest") || !strings.Contains(text, "counted 81 bad ends") {
		t.Errorf("%d others\n%s", r.Known, text)
	}
}
