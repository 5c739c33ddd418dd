package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

// A log that grows faster than it is read does not hold up who reads it.
func TestLogThatGrowsWhileItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), ServerLogName)
	more := bytes.Repeat([]byte("srv  update_slots: all slots are idle\n"), 1000)
	reads := 0
	write := func() int64 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer f.Close()
		if reads++; reads > 100 {
			t.Fatal("it is still being read")
		}
		f.Write(more)
		return 0
	}
	write()
	w := newLogWatch(path, 4, write, func(engine.LogEvent, bool) {})
	if err := w.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	size, unread, err := w.unread()
	if want := int64(len(more)); err != nil || size != 3*want || unread != want {
		t.Errorf("%d of %d bytes are unread, %v, want those %d that were written meanwhile", unread, size, err, want)
	}
}

// What a server writes once it is told to end is told apart, to the byte.
func TestLogOfTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), ServerLogName)
	write := func(line string) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.WriteString(line + "\n")
	}
	type told struct {
		Kind   engine.LogKind
		Ending bool
	}
	var got []told
	w := newLogWatch(path, 4, func() int64 { return 0 }, func(ev engine.LogEvent, ending bool) { got = append(got, told{ev.Kind, ending}) })
	write("srv  start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1")
	if err := w.ending(); err != nil {
		t.Fatal(err)
	}
	write("terminate called without an active exception")
	if err := w.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]told{{engine.LogBind, false}, {engine.LogAbort, true}}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A server may begin to log long after its start, behind a front end or a slow
// loader: requests and tasks are still found to be at the same time.
func TestLogClockOfASlowStart(t *testing.T) {
	for _, slow := range []int64{0, 3_000_000} {
		path := filepath.Join(t.TempDir(), ServerLogName)
		now := int64(5_000_000)
		w := newLogWatch(path, 1, func() int64 { return now }, func(engine.LogEvent, bool) {})
		w.started(1_000_000)
		log := func(at int64, text string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			us := at - 1_000_000 - slow
			fmt.Fprintf(f, "0.%02d.%03d.%03d I %s\n", us/1e6, us/1e3%1e3, us%1e3, text)
			now = at + 20_000
			if err := w.drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		log(5_000_000, "srv    load_model: initializing, n_slots = 1, n_ctx_slot = 8192, kv_unified = 'true'")
		w.beginLoad()
		log(6_000_000, "slot get_availabl: id  0 | task -1 | selected slot by LCP similarity, f_sim_best = 1.000 (> 0.100 thold), f_keep = 0.9")
		log(6_000_000, "slot launch_slot_: id  0 | task 1 | processing task, is_child = 0")
		log(6_400_000, "slot      release: id  0 | task 1 | stop processing: n_tokens = 9, truncated = 0")
		w.exempt(span{slot: -1, from: 5_990_000, to: 6_410_000})
		if s := w.shape(); s.launched() != 1 || s.LCP != 0 {
			t.Errorf("%d µs late: %+v", slow, s)
		}
	}
}

// The rest of a log that is given up is no more than summed up.
func TestLogThatIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), ServerLogName)
	text := []byte("terminate called without an active exception\n")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	w := newLogWatch(path, 4, func() int64 { return 0 }, func(ev engine.LogEvent, _ bool) { t.Errorf("told of %+v", ev) })
	w.giveUp()
	if err := w.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, sum := w.totals(); sum != sumOf(text) {
		t.Errorf("the sum is %s", sum)
	}
}
