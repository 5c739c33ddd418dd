package acceptance

import (
	"slices"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// A SlotTask is what a slot did when a life ended with a fault, or shortly
// before: the log's account of a task, joined with the request that it served.
type SlotTask struct {
	Slot         int    `json:"slot"`
	Task         int    `json:"task"`
	Request      *int   `json:"request"` // null: none of the load, or not for certain
	Faulted      bool   `json:"faulted"` // that request had a fault of its own
	Running      bool   `json:"running"` // it was not over when the life was
	Selected     string `json:"selected"`
	NeverUsed    bool   `json:"never_used"` // the slot's first task
	PromptTokens int    `json:"prompt_tokens"`
	Tokens       int    `json:"tokens"`
	GraphsReused int    `json:"graphs_reused"` // since the server started
	FromUS       int64  `json:"from_us"`       // by the log's clock
	ToUS         int64  `json:"to_us"`
}

// recent is how many tasks and replies are kept for the join. A life ends with
// its first fault, so that what led to it is among the last.
const recent = 256

// lastReplies keeps what the wire knows of the last answers.
type lastReplies struct {
	mu      sync.Mutex
	replies []engine.Reply
	ids     []int
	faulted []bool
}

func (l *lastReplies) add(rec *requestRecord, faulted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	us := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
	l.replies = append(last(l.replies), engine.Reply{
		Slot: rec.Slot, Tokens: rec.Predicted, Cut: rec.Outcome != outcomeAnswered, Sent: us(rec.StartUS), Received: us(rec.EndUS),
	})
	l.ids, l.faulted = append(last(l.ids), rec.ID), append(last(l.faulted), faulted)
}

// last makes room for one more.
func last[T any](list []T) []T {
	if len(list) >= recent {
		return slices.Delete(list, 0, len(list)-recent+1)
	}
	return list
}

// join finds the tasks that a reader of a fault wants to see: those of faulted
// requests, those that ran at the end, and the last one of every slot.
func (l *lastReplies) join(tasks []engine.Task) []SlotTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	var over []engine.Task // nobody has an answer of the others
	var index []int
	for i, t := range tasks {
		if t.Finished {
			over, index = append(over, t), append(index, i)
		}
	}
	request := map[int]int{} // by index of the task: index of the reply
	for reply, task := range engine.MatchReplies(over, l.replies) {
		if task >= 0 {
			request[index[task]] = reply
		}
	}
	var list []SlotTask
	seen := map[int]bool{} // a later task of the slot is in the list
	for i, t := range slices.Backward(tasks) {
		reply, known := request[i]
		faulted := known && l.faulted[reply]
		if !faulted && t.Finished && seen[t.Slot] {
			continue
		}
		seen[t.Slot] = true
		s := SlotTask{
			Slot: t.Slot, Task: t.ID, Faulted: faulted, Running: !t.Finished, Selected: t.How, NeverUsed: t.NeverUsed, PromptTokens: t.PromptTokens,
			Tokens: t.Tokens, GraphsReused: t.GraphsReused, FromUS: t.Launched.Microseconds(), ToUS: t.Released.Microseconds(),
		}
		if known {
			s.Request = &l.ids[reply]
		}
		list = append(list, s)
	}
	slices.Reverse(list)
	return list
}
