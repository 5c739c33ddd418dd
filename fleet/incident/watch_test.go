package incident

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// scene is a manager whose journal is written by a test, and the reports that a watch of it makes.
type scene struct {
	*testing.T
	began   time.Time
	journal []systemd.Entry
	state   string
	full    time.Time // the disk is full until then
	unasked time.Time // the manager does not answer until then
	unread  time.Time // the journal cannot be read until then
	ours    []string
	running func(time.Duration) []fleet.Running
	reports []string
	folders map[string]bool

	later     time.Duration // the manager runs only then
	incidents string        // "incidents": nothing is really written
}

func newScene(t *testing.T) *scene {
	// Nothing happens at a full second, so that it is clear what comes first: the news or the watch's look at it.
	return &scene{
		T: t, began: time.Now().Add(300 * time.Millisecond), state: filepath.Join(t.TempDir(), "state", "watch.json"), folders: map[string]bool{}, incidents: "incidents",
		ours: []string{"a.service", "b.service"}, running: func(time.Duration) []fleet.Running { return nil },
	}
}

// say puts an entry of the manager about a unit into the journal.
func (s *scene) say(after time.Duration, unit, id string, fields ...string) {
	e := systemd.Entry{At: s.began.Add(after), Boot: "b", Monotonic: after, Cursor: fmt.Sprint(len(s.journal)), ID: id, Unit: unit, Identifier: "systemd", Fields: map[string]string{}}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i]] = fields[i+1]
	}
	s.journal = append(s.journal, e)
}

// crash is a service that dies by a signal and is started again.
func (s *scene) crash(after time.Duration, unit, signal string) {
	s.die(after, unit, signal)
	s.say(after+time.Second, unit, systemd.IDUnitStopped)
	s.say(after+time.Second, unit, systemd.IDUnitStarting)
	s.say(after+time.Second, unit, systemd.IDUnitStarted)
}

func (s *scene) die(after time.Duration, unit, signal string) {
	s.say(after, unit, systemd.IDProcessExited, "EXIT_CODE", "killed", "EXIT_STATUS", signal)
	s.say(after, unit, systemd.IDFailureResult, "UNIT_RESULT", "signal")
	s.say(after+time.Second, unit, systemd.IDRestartScheduled, "N_RESTARTS", "1")
}

// giveUp is a start limit that is hit.
func (s *scene) giveUp(after time.Duration, unit string) {
	s.say(after, unit, systemd.IDUnitStopped)
	s.say(after, unit, systemd.IDFailureResult, "UNIT_RESULT", "signal")
	s.say(after, unit, systemd.IDUnitStartFailed)
}

// stop is an owner who stops or restarts a service whose process ends in some way.
func (s *scene) stop(after time.Duration, unit, code, status, result string) {
	s.say(after, unit, systemd.IDUnitStopping)
	if code != "" {
		s.say(after, unit, systemd.IDProcessExited, "EXIT_CODE", code, "EXIT_STATUS", status)
		s.say(after, unit, systemd.IDFailureResult, "UNIT_RESULT", result)
	}
	s.say(after, unit, systemd.IDUnitStopped)
	s.say(after, unit, systemd.IDUnitStarting)
	s.say(after, unit, systemd.IDUnitStarted)
}

// follow hands out what the journal has when its time has come.
func (s *scene) follow(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) error {
	from := 0
	if q.After != "" {
		if _, err := fmt.Sscan(q.After, &from); err != nil {
			return err
		}
		from++
	} else if q.Since.IsZero() {
		return errors.New("neither a place nor a time to begin at")
	}
	for _, e := range s.journal[from:] {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(e.At)):
		}
		if !slices.Contains(q.IDs, e.ID) || q.After == "" && e.At.Before(q.Since) {
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// watch watches for a while; reports name the unit, when it was made, from when on its ends are, and how many.
func (s *scene) watch(last time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), last)
	defer cancel()
	err := Watch(ctx, WatchOptions{
		Sources: func() []Source {
			if s.later > 0 && time.Since(s.began) < s.later {
				return nil
			}
			return []Source{{
				Name:    "user",
				Running: func(context.Context, ...string) ([]fleet.Running, error) { return s.running(time.Since(s.began)), nil },
				Units: func(context.Context) ([]string, error) {
					if time.Now().Before(s.unasked) {
						return nil, errors.New("no answer")
					}
					return s.ours, nil
				},
				Gather: func(_ context.Context, unit string, since, until time.Time, lost []Lost) (*Evidence, error) {
					e := &Evidence{Unit: unit, Since: since, GatheredAt: time.Now(), Lost: lost}
					if time.Now().Before(s.unread) {
						e.Unread = errors.New("fork: resource temporarily unavailable")
					}
					return e, nil
				},
			}}
		},
		Follow: s.follow, Incidents: s.incidents, State: s.state, Now: time.Now,
		write: func(dir string, e *Evidence, r *Report) error {
			switch {
			case s.incidents != "incidents":
				return Write(dir, e, r)
			case time.Now().Before(s.full):
				return &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC}
			case s.folders[dir]:
				return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
			}
			s.folders[dir] = true
			return nil
		},
		Written: func(dir string, ends int, r *Report) {
			s.reports = append(s.reports, fmt.Sprintf("%s of %s at %s: %d since %s", strings.TrimSuffix(filepath.Base(dir)[17:], ".service"),
				strings.TrimPrefix(filepath.Base(dir)[9:16], "T"), r.Evidence.GatheredAt.Sub(s.began).Round(time.Second), ends, r.Evidence.Since.Sub(s.began)+time.Second))
		},
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) want(reports ...string) {
	s.Helper()
	if d := cmp.Diff(reports, s.reports); d != "" {
		s.Error(d)
	}
}

func TestWatchReportsEachBadEndOnce(t *testing.T) {
	const minute = time.Minute
	for _, test := range []struct {
		name string
		make func(s *scene)
		want []string
	}{
		{"a crash", func(s *scene) { s.crash(minute, "a.service", "11") }, []string{"a of 000100Z at 1m32s: 1 since 1m0s"}},
		{"that gives up at once", func(s *scene) {
			s.say(minute, "a.service", systemd.IDProcessExited, "EXIT_CODE", "exited", "EXIT_STATUS", "1")
			s.say(minute, "a.service", systemd.IDFailureResult, "UNIT_RESULT", "exit-code")
			s.say(minute, "a.service", systemd.IDUnitStartFailed)
		}, []string{"a of 000100Z at 1m4s: 1 since 1m0s"}},
		{"of another unit", func(s *scene) { s.crash(minute, "other.service", "11") }, nil},
		{"of two units", func(s *scene) {
			s.crash(minute, "a.service", "11")
			s.crash(minute+10*time.Second, "b.service", "6")
		}, []string{"a of 000100Z at 1m32s: 1 since 1m0s", "b of 000110Z at 1m42s: 1 since 1m10s"}},
		{"a core dump, told before and after the end", func(s *scene) {
			s.say(minute, "a.service", systemd.IDCoredump)
			s.crash(minute+time.Second, "a.service", "11")
			s.say(minute+3*time.Second, "a.service", systemd.IDCoredump)
		}, []string{"a of 000103Z at 1m34s: 1 since 1m0s"}},
		{"the OOM killer", func(s *scene) {
			s.say(minute, "a.service", systemd.IDOOM)
			s.crash(minute, "a.service", "9")
		}, []string{"a of 000100Z at 1m32s: 1 since 1m0s"}},
		{"stops and restarts by the owner", func(s *scene) {
			s.stop(minute, "a.service", "", "", "")
			s.stop(2*minute, "a.service", "exited", "1", "exit-code")
			s.stop(3*minute, "a.service", "killed", "9", "timeout")
		}, nil},
		{"a crash while it was stopped", func(s *scene) { s.stop(minute, "a.service", "killed", "11", "signal") },
			[]string{"a of 000100Z at 1m31s: 1 since 1m0s"}},
		{"a crash after a stop", func(s *scene) {
			s.stop(minute, "a.service", "exited", "1", "exit-code")
			s.crash(minute+time.Second, "a.service", "9")
		}, []string{"a of 000101Z at 1m33s: 1 since 1m1s"}},
		{"a start limit", func(s *scene) {
			for i := range 4 {
				s.crash(minute+time.Duration(2*i)*time.Second, "a.service", "9")
			}
			s.die(minute+8*time.Second, "a.service", "9")
			s.giveUp(minute+10*time.Second, "a.service")
		}, []string{"a of 000110Z at 1m14s: 5 since 1m0s"}},
		{"a loop: the first, then the others in one report", func(s *scene) {
			for i := range 30 {
				s.crash(minute+time.Duration(i)*40*time.Second, "a.service", "9")
			}
		}, []string{"a of 000100Z at 1m32s: 1 since 1m0s", "a of 002020Z at 21m21s: 29 since 1m40s"}},
		{"a loop that gives up", func(s *scene) {
			s.crash(minute, "a.service", "9")
			s.crash(minute+40*time.Second, "a.service", "9")
			s.die(minute+80*time.Second, "a.service", "9")
			s.giveUp(minute+81*time.Second, "a.service")
		}, []string{"a of 000100Z at 1m32s: 1 since 1m0s", "a of 000221Z at 2m25s: 2 since 1m40s"}},
		{"a fast loop that goes on and on", func(s *scene) {
			for i := range 60 * 90 {
				s.crash(minute+time.Duration(i)*2*time.Second, "a.service", "9")
			}
		}, []string{
			"a of 000258Z at 3m0s: 60 since 1m0s", "a of 010258Z at 1h3m0s: 1800 since 3m0s", "a of 020258Z at 2h3m0s: 1800 since 1h3m0s",
			"a of 030058Z at 3h1m59s: 1740 since 2h3m0s",
		}},
		{"a slow loop: five, then those of an hour in one", func(s *scene) {
			for i := range 100 {
				s.crash(minute+time.Duration(i)*2*time.Minute, "a.service", "9")
			}
		}, []string{
			"a of 000100Z at 1m32s: 1 since 1m0s", "a of 000300Z at 3m32s: 1 since 3m0s", "a of 000500Z at 5m32s: 1 since 5m0s",
			"a of 000700Z at 7m32s: 1 since 7m0s", "a of 000900Z at 9m32s: 1 since 9m0s", "a of 010100Z at 1h2m1s: 26 since 11m0s",
			"a of 010300Z at 1h4m1s: 1 since 1h3m0s",
		}},
		{"a full disk", func(s *scene) {
			s.full = s.began.Add(5 * minute)
			s.crash(minute, "a.service", "11")
			s.crash(3*minute, "b.service", "11")
		}, []string{"b of 000300Z at 6m2s: 1 since 3m0s", "a of 000100Z at 6m42s: 1 since 1m0s"}},
		{"a manager that does not answer", func(s *scene) {
			s.unasked = s.began.Add(2 * minute)
			s.crash(minute, "a.service", "11")
		}, []string{"a of 000100Z at 2m2s: 1 since 1m0s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				test.make(s)
				s.watch(4 * time.Hour)
				s.reports = s.reports[:min(7, len(s.reports))]
				s.want(test.want...)
			})
		})
	}
}

// Whenever the watch ends and begins anew, every end is reported, and once.
func TestWatchGoesOnWhereItWas(t *testing.T) {
	for cut := 30 * time.Second; cut < 4*time.Minute; cut += 2300 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			s.crash(time.Minute, "a.service", "11")
			// A stop that takes its time, and may be cut in two.
			s.say(85*time.Second, "b.service", systemd.IDUnitStopping)
			s.say(100*time.Second, "b.service", systemd.IDProcessExited, "EXIT_CODE", "exited", "EXIT_STATUS", "1")
			s.say(100*time.Second, "b.service", systemd.IDFailureResult, "UNIT_RESULT", "exit-code")
			s.say(100*time.Second, "b.service", systemd.IDUnitStopped)
			s.say(100*time.Second, "b.service", systemd.IDUnitStarted)
			s.crash(103*time.Second, "b.service", "6")
			s.crash(104*time.Second, "other.service", "6")
			s.crash(110*time.Second, "a.service", "11")
			s.watch(cut)
			time.Sleep(time.Minute) // nobody watches
			s.watch(10 * time.Minute)
			ends := map[string]int{}
			for _, r := range s.reports {
				var n int
				_, count, _ := strings.Cut(r, "s: ")
				fmt.Sscan(count, &n)
				ends[r[:1]] += n
			}
			if d := cmp.Diff(map[string]int{"a": 2, "b": 1}, ends); d != "" {
				t.Errorf("cut at %s: %q: %s", cut, s.reports, d)
			}
		})
	}
}

// What is read once more, for another unit's sake, is not reported once more.
func TestTrackPassesOverWhatIsCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.crash(0, "a.service", "9")
		s.crash(time.Second, "a.service", "9")
		first := newTrack(sourceState{}, time.Second, s.began)
		for _, e := range s.journal {
			first.take(e)
		}
		at := s.began.Add(10 * time.Second)
		due := first.due(at)
		if len(due) != 1 || due[0].ends != 2 {
			t.Fatalf("due are %+v", due)
		}
		first.reported(due[0], at)
		again := newTrack(sourceState{Covered: first.covered}, time.Second, s.began)
		s.crash(20*time.Second, "a.service", "9")
		for i, e := range s.journal {
			if i == len(s.journal)/3*2 && len(again.due(at.Add(time.Hour))) != 0 {
				t.Error("what a report covers is due once more")
			}
			again.take(e)
		}
		if due := again.due(at.Add(2 * time.Hour)); len(due) != 1 || due[0].ends != 1 {
			t.Errorf("due are %+v", due)
		}
	})
}

// What was written, but of which the state could not be saved, is not written again.
func TestWatchFindsWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.incidents = t.TempDir()
		s.crash(time.Minute, "a.service", "11")
		s.watch(2 * time.Minute)
		s.state = filepath.Join(t.TempDir(), "lost.json")
		s.began, s.reports = s.began.Add(-time.Minute), nil
		st := &watchState{Schema: 1, Sources: map[string]sourceState{"user": {Begun: s.began}}}
		if err := st.write(s.state); err != nil {
			t.Fatal(err)
		}
		s.watch(2 * time.Minute)
		s.want()
	})
}

func TestWatchSaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := WatchOptions{
			Sources: func() []Source { return []Source{{Name: "user"}} }, State: filepath.Join(t.TempDir(), "state.json"), Now: time.Now,
			Follow: func(context.Context, systemd.JournalQuery, func(systemd.Entry) error) error {
				return fmt.Errorf("%w: join the group", systemd.ErrNoJournal)
			},
		}
		if err := Watch(t.Context(), o); !errors.Is(err, systemd.ErrNoJournal) {
			t.Error(err)
		}
		st := &watchState{Schema: 2}
		if err := st.write(o.State); err != nil {
			t.Fatal(err)
		}
		if err := Watch(t.Context(), o); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Error(err)
		}
	})
}
