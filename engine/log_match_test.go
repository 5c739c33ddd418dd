package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMatchReplies(t *testing.T) {
	const s, h = time.Second, time.Hour
	done := func(slot, tokens int) Task { return Task{Slot: slot, Tokens: tokens, Finished: true} }
	failed := Task{Slot: 0, Error: "Context size has been exceeded.", Finished: true}
	cancelled := Task{Slot: 0, Cancelled: true, Finished: true}
	between := func(slot int, from, to time.Duration) Task {
		return Task{Slot: slot, Launched: from, Released: to, Finished: true}
	}
	tests := []struct {
		name    string
		tasks   []Task
		replies []Reply
		want    []int
	}{
		{"none", nil, nil, []int{}},
		{"the k-th of a slot", []Task{done(0, 0), done(1, 0), done(0, 0), done(1, 0)},
			[]Reply{{Slot: 1}, {Slot: 0}, {Slot: 1}, {Slot: 0}}, []int{1, 0, 3, 2}},
		{"an error names no slot", []Task{done(0, 4), failed, done(0, 4)},
			[]Reply{{Slot: 0, Tokens: 4}, {Slot: -1}, {Slot: 0, Tokens: 4}}, []int{0, -1, 2}},
		{"a cancelled one has no reply", []Task{cancelled, done(0, 4)}, []Reply{{Slot: 0, Tokens: 4}}, []int{1}},
		{"but perhaps a piece of one", []Task{cancelled, done(0, 4)}, []Reply{{Slot: 0, Tokens: 2, Cut: true}, {Slot: 0, Tokens: 4}}, []int{0, 1}},
		{"one of several answers", []Task{done(0, 4), {Slot: 0, Child: true}}, []Reply{{Slot: 0}}, []int{0}},
		{"a client that gave up, told by tokens", []Task{done(0, 4), done(0, 32), done(0, 4)},
			[]Reply{{Slot: 0, Tokens: 4}, {Slot: 0, Tokens: 4}}, []int{0, 2}},
		{"a client that gave up, not told", []Task{done(0, 4), done(0, 4), done(0, 9)},
			[]Reply{{Slot: 0, Tokens: 4}, {Slot: 0, Tokens: 9}}, []int{-1, 2}},
		{"a client that gave up, told by time", []Task{between(1, 1*s, 2*s), between(0, 1*s, 2*s), between(0, 2*s, 8*s), between(0, 9*s, 10*s)},
			// The clocks are an hour apart, which slot 1 tells.
			[]Reply{{Slot: 1, Sent: h + 1*s, Received: h + 2*s}, {Sent: h + 1*s, Received: h + 2*s}, {Sent: h + 3*s, Received: h + 10*s}}, []int{0, 1, 3}},
		// Of the two it is the one that took no longer than the reply.
		{"a clock that was set tells only how long", []Task{between(1, 1*s, 2*s), between(1, 3*s, 4*s), between(0, 1*s, 2*s), between(0, 2*s, 8*s), between(0, 9*s, 10*s)},
			[]Reply{{Slot: 1, Sent: h + 1*s, Received: h + 2*s}, {Slot: 1, Sent: 3 * s, Received: 4 * s}, {Sent: 1 * s, Received: 2 * s}, {Sent: 3 * s, Received: 10 * s}}, []int{0, 1, 2, -1}},
		{"an end that the log has not", []Task{done(0, 4), {Slot: 0}}, []Reply{{Slot: 0, Tokens: 4}, {Slot: 0, Tokens: 4}}, []int{0, 1}},
		{"tokens that are counted in another way", []Task{done(0, 3), cancelled, done(0, 3)},
			[]Reply{{Slot: 0, Tokens: 4}, {Slot: 0, Tokens: 4}}, []int{0, 2}},
		{"the same, and a client that gave up", []Task{done(0, 3), done(0, 3), done(0, 3)},
			[]Reply{{Slot: 0, Tokens: 4}, {Slot: 0, Tokens: 4}}, []int{-1, -1}},
		{"a launch that the log has not", []Task{done(0, 4)}, []Reply{{Slot: 0, Tokens: 4}, {Slot: 0, Tokens: 4}}, []int{-1, -1}},
		{"a slot that the log has not", []Task{done(0, 4)}, []Reply{{Slot: 3, Tokens: 4}}, []int{-1}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, MatchReplies(tt.tasks, tt.replies)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What is matched is in order, each task once, and only by its own slot.
func FuzzMatchReplies(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, []byte{0, 1, 2, 3})
	f.Add([]byte{0, 64, 128, 0}, []byte{0, 0})
	f.Fuzz(func(t *testing.T, launched, came []byte) {
		var tasks []Task
		for _, b := range launched {
			at := time.Duration(len(tasks)) * time.Second
			tasks = append(tasks, Task{Slot: int(b & 3), Tokens: int(b >> 2 & 7), Launched: at, Released: at + time.Second, Finished: b&32 == 0, Cancelled: b&64 != 0})
		}
		var replies []Reply
		for _, b := range came {
			at := time.Duration(len(replies)) * time.Second
			replies = append(replies, Reply{Slot: int(b&3) - int(b>>7), Tokens: int(b >> 2 & 7), Sent: at, Received: at + 2*time.Second, Cut: b&64 != 0})
		}
		last := map[int]int{}
		for i, at := range MatchReplies(tasks, replies) {
			if at < 0 {
				continue
			}
			slot := replies[i].Slot
			if before, ok := last[slot]; tasks[at].Slot != slot || ok && before >= at {
				t.Fatalf("reply %d goes with task %d", i, at)
			}
			last[slot] = at
		}
	})
}
