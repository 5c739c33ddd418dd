package incident

import (
	"maps"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// The states of a Slot.
const (
	SlotRunning   = "running"
	SlotFinished  = "finished"
	SlotNeverUsed = "never-used"
	SlotUnseen    = "unseen" // a part of the log is not there: it had no task that is seen, or the end of its task is not
)

// slotsAt is what each slot of a server did last before a moment, by id. Slots without a task are listed where the log
// goes back to the server's start.
func (s *server) slotsAt(at time.Time) []Slot {
	const most = 1024 // no server makes more
	ids := slices.Collect(maps.Keys(s.slots))
	if s.startup != nil {
		for id := range min(s.startup.Slots, most) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var slots []Slot
	for _, id := range slices.Compact(ids) {
		t := s.slots[id]
		if t == nil {
			slot := Slot{ID: id, Task: -1, State: SlotNeverUsed, NeverUsed: true}
			if s.holed {
				slot.State, slot.NeverUsed = SlotUnseen, false
			}
			slots = append(slots, slot)
			continue
		}
		slots = append(slots, s.slot(t, at))
	}
	return slots
}

func (s *server) slot(t *engine.Task, at time.Time) Slot {
	out := Slot{ID: t.Slot, Task: t.ID, State: SlotRunning, Selected: t.How,
		NeverUsed:    t.NeverUsed && (t.How == engine.SelectedLRU || !s.holed),
		PromptTokens: t.PromptTokens, Tokens: t.Tokens, Context: t.Context, Tasks: s.counts[t.Slot]}
	if out.PromptTokens == 0 {
		out.PromptTokens = t.Prompt
	}
	if t.How == engine.SelectedLCP && t.Similarity > 0 {
		similarity := t.Similarity
		out.Similarity = &similarity
	}
	if t.GraphsReused > 0 {
		reused := t.GraphsReused
		out.GraphsReused = &reused
	}
	when := s.tasks[taskKey{t.Slot, t.ID}]
	if when == nil {
		when = &taskTimes{}
	}
	out.SelectedAt, out.LaunchedAt = moment(when.selected), moment(when.launched)
	if s.doubtful[t.Slot] {
		out.State = SlotUnseen
	}
	if t.Finished {
		out.State, out.FinishedAt = SlotFinished, moment(when.released)
		if out.FinishedAt != nil && !at.IsZero() {
			before := at.Sub(*out.FinishedAt).Seconds()
			out.BeforeS = &before
		}
	}
	return out
}

// describe is what a server said of itself.
func (s *server) describe() *Server {
	out := &Server{Devices: slices.Compact(slices.Clone(s.placement.Devices)), Tasks: s.launches}
	if s.startup != nil {
		out.Slots, out.Context, out.KVUnified = s.startup.Slots, s.startup.Context, s.startup.KVUnified
	}
	if out.Devices == nil {
		out.Devices = []string{}
	}
	return out
}
