package engine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// eventsOf reads a log in pieces that end at the given places.
func eventsOf(log string, ends ...int) []LogEvent {
	var r LogReader
	var got []LogEvent
	add := func(ev LogEvent) { got = append(got, ev) }
	from := 0
	for _, end := range ends {
		r.Feed([]byte(log[from:end]), time.Second, add)
		from = end
	}
	r.Feed([]byte(log[from:]), time.Second, add)
	r.Flush(time.Second, add)
	return got
}

// A timing of 2025 has its slot in the line before it.
func TestLogReaderNamesBareTimings(t *testing.T) {
	var got []string
	for _, name := range []string{"a-2024.log", "b-2026.log", "c-router.log"} {
		raw, err := os.ReadFile(filepath.Join("testdata", "log-shapes", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range eventsOf(string(raw)) {
			if ev.Kind == LogTiming && (ev.Slot < 0 || ev.Task < 0) {
				t.Errorf("%s: a timing without slot: %+v", name, ev)
			}
			if ev.Kind == LogTiming || ev.Kind == LogRelease {
				got = append(got, string(ev.Kind)+" "+ev.Phase)
			}
		}
	}
	want := "release , timing prompt, timing eval, timing total, timing prompt, timing eval, release , release , release "
	if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// What comes after the block, or from another server, is not of that slot.
	for _, log := range []string{
		"slot print_timing: id  2 | task 7 | \nsrv  update_slots: all slots are idle\neval time = 1.0 ms / 1 tokens\n",
		"[1] slot print_timing: id  2 | task 7 | \n[2] eval time = 1.0 ms / 1 tokens\n",
	} {
		got := eventsOf(log)
		if last := got[len(got)-1]; last.Kind != LogTiming || last.Slot != -1 {
			t.Errorf("%q: %+v", log, last)
		}
	}
}

// The pieces of a line that is too long must not be taken for lines.
func TestLogReaderLeavesOutLongLines(t *testing.T) {
	guard := "HRX returned NaN logits at vocab index 7"
	long := "0.00.000.001 D que post: prompt: " + strings.Repeat("x", maxLogLine) + "\r" + guard
	log := "slot release: id 0 | task 1 | stop processing: n_tokens = 1\n" + long + "\n" + guard + "\n"
	last := len(log) - len(guard) - 1
	inside := last - 1 - len(guard) // where the long line's end could be taken for a line
	for _, ends := range [][]int{nil, {70}, {maxLogLine - 1}, {maxLogLine}, {last}, {last - 1}, {inside}, {inside - 10, inside}} {
		got := eventsOf(log, ends...)
		if len(got) != 2 || got[0].Kind != LogRelease || got[1].Kind != LogNaN {
			t.Errorf("cut at %d: %+v", ends, got)
		}
	}
	var r LogReader
	for range 1000 {
		r.Feed([]byte(strings.Repeat("y", 10<<10)), 0, func(LogEvent) { t.Fatal("an event out of nothing") })
	}
	if cap(r.rest) > 2*maxLogLine {
		t.Errorf("%d bytes kept of an endless line", cap(r.rest))
	}
}

func TestLogEventAt(t *testing.T) {
	got := eventsOf("0.00.000.005 I srv  update_slots: all slots are idle\nsrv  update_slots: all slots are idle")
	if len(got) != 2 || got[0].At() != 5*time.Microsecond || got[1].At() != time.Second {
		t.Errorf("%+v", got)
	}
}

// The same bytes give the same events, however they come.
func FuzzLogReader(f *testing.F) {
	for _, pattern := range []string{"log-shapes/*", "null-or-nan/*.log", "placement/*"} {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(raw), uint64(1))
		}
	}
	f.Add("slot print_timing: id  0 | task 7 | \neval time = 1.0 ms / 1 tokens\n"+strings.Repeat("z", maxLogLine)+"\nslot", uint64(2))
	f.Fuzz(func(t *testing.T, log string, seed uint64) {
		want := eventsOf(log)
		rnd := rand.New(rand.NewPCG(seed, 1))
		var ends []int
		for at := 0; at < len(log); {
			at = min(len(log), at+rnd.IntN(1+rnd.IntN(1+len(log))))
			ends = append(ends, at)
			if len(ends) > 1000 {
				break
			}
		}
		if diff := cmp.Diff(want, eventsOf(log, ends...)); diff != "" {
			t.Fatalf("cut at %v (-whole +cut):\n%s", ends, diff)
		}
		var lines []LogEvent
		for line := range strings.SplitSeq(log, "\n") {
			if ev, ok := ParseLogLine(line); ok && len(line) <= maxLogLine {
				lines = append(lines, ev)
			}
		}
		if len(lines) != len(want) {
			t.Fatalf("%d events, %d of the single lines", len(want), len(lines))
		}
		j := Joiner{Done: func(task Task) {
			if task.Released < task.Launched || task.Selected > task.Launched || task.Life < 1 || len(task.Guard) > maxGuard {
				t.Fatalf("%+v", task)
			}
		}}
		for _, ev := range want {
			j.Add(ev)
		}
		j.Flush()
	})
}
