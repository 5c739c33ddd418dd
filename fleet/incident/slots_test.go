package incident

import (
	"slices"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// What the log does not have is not taken for what did not happen.
func TestSlotsOfALogWithHoles(t *testing.T) {
	journal := "== a" + serverStart + `
		10:00:03.0 1bit[20] 0.02.900.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 20, truncated = 0
		10:30:00.0 1bit[20] 29.59.900.000 I slot launch_slot_: id  1 | task 90 | processing task, is_child = 0
		10:30:05.0 1bit[20] 30.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing=no
		10:30:05.0 1bit[20] /src/common/sampling.cpp:600: HRX: NaN logits
		10:30:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT`
	idle := "== a" + serverStart + `
		10:00:03.0 1bit[20] 0.02.900.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 20, truncated = 0
		10:29:59.0 1bit[20] 29.58.900.000 I srv  update_slots: all slots are idle` + journal[len("== a"+serverStart):]
	for name, c := range map[string]struct {
		journal              string
		hole, dropped, empty bool
		slot                 bool   // the guard's is certain
		other                string // state of the slot that has no task in the log
	}{
		"whole":                  {journal: journal, slot: true, other: SlotNeverUsed},
		"a part was not kept":    {journal: journal, hole: true, other: SlotUnseen},
		"an idle moment after":   {journal: idle, hole: true, slot: true, other: SlotUnseen},
		"journald dropped some":  {journal: journal, dropped: true, other: SlotUnseen},
		"a message is not there": {journal: journal, empty: true, other: SlotUnseen},
	} {
		e := &Evidence{Unit: testUnit, Entries: entriesOf(t, c.journal, false)}
		at := e.Entries[0].At
		if c.hole {
			e.Kept = []Span{{at, at.Add(5 * time.Minute)}, {at.Add(25 * time.Minute), at.Add(time.Hour)}}
		}
		for i := range e.Entries {
			if e.Entries[i].At.Sub(at) < 20*time.Minute {
				continue
			}
			lost := e.Entries[i]
			switch {
			case c.dropped:
				lost.ID, lost.Identifier, lost.Message, lost.PID = systemd.IDSuppressed, "systemd-journald", "Suppressed 7 messages from llm.service", 1
			case c.empty:
				lost.Message, lost.Missing = "", "the message is too long to be read"
			default:
				continue
			}
			e.Entries = slices.Insert(e.Entries, i, lost)
			break
		}
		r := Analyse(e)
		if len(r.Slots) != 2 || len(r.Guard) != 1 {
			t.Errorf("%s: slots %+v, guard %+v", name, r.Slots, r.Guard)
			continue
		}
		if r.Slots[0].State != c.other {
			t.Errorf("%s: slot 0 is %s, want %s", name, r.Slots[0].State, c.other)
		}
		if got := r.Guard[0].Slot != nil; got != c.slot {
			t.Errorf("%s: the guard's slot is certain: %v, want %v", name, got, c.slot)
		}
		if s := r.Slots[1]; s.Task != 90 || s.State != SlotRunning {
			t.Errorf("%s: slot 1 is %+v", name, s)
		}
	}
}

// A task whose end may be in a hole is not said to run.
func TestTaskWhoseEndIsNotSeen(t *testing.T) {
	e := &Evidence{Unit: testUnit, Entries: entriesOf(t, "== a"+serverStart+`
		10:30:05.1 systemd llm.service: Main process exited, code=killed, status=9/KILL`, false)}
	at := e.Entries[0].At
	e.Entries = append(e.Entries[:len(e.Entries)-1], append(entriesOf(t, "== a\n10:29:00.0 1bit[20] 28.59.000.000 I srv log_server_r: done request: GET / 127.0.0.1 200", false), e.Entries[len(e.Entries)-1])...)
	e.Kept = []Span{{at, at.Add(5 * time.Minute)}, {at.Add(25 * time.Minute), at.Add(time.Hour)}}
	if s := Analyse(e).Slots; len(s) != 2 || s[1].State != SlotUnseen {
		t.Errorf("slots %+v", s)
	}
}
