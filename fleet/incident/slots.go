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
			slots = append(slots, Slot{ID: id, Task: -1, State: SlotNeverUsed, NeverUsed: true})
			continue
		}
		slots = append(slots, s.slot(t, at))
	}
	return slots
}

func (s *server) slot(t *engine.Task, at time.Time) Slot {
	out := Slot{ID: t.Slot, Task: t.ID, State: SlotRunning, Selected: t.How, NeverUsed: t.NeverUsed,
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
