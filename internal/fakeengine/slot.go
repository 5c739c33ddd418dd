package fakeengine

import (
	"net/http"
	"time"
)

type slot struct {
	id     int
	busy   bool
	used   int       // the turn at which it was released; 0: never
	at     time.Time // of that
	prompt string
	task   int
	failed bool // what it works on gets an error: the context is full
}

// A job is one completion on its slot.
type job struct {
	slot     *slot
	number   int // of the completion, from 1
	task     int
	previous string // the prompt that the slot had before
	again    bool   // the same prompt came before
	crowded  bool   // other slots were busy when it began
}

func (e *Engine) getSlots(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rows := []map[string]any{}
	for _, sl := range e.slots {
		row := map[string]any{"id": sl.id, "n_ctx": e.o.Ctx, "is_processing": sl.busy}
		if sl.task >= 0 {
			row["id_task"] = sl.task
		}
		rows = append(rows, row)
	}
	reply(w, http.StatusOK, rows)
}

// take waits for a slot and chooses it as llama-server does: the one whose last
// prompt begins alike, else the least recently used.
func (e *Engine) take(prompt string) job {
	e.mu.Lock()
	defer e.mu.Unlock()
	best := e.idle()
	for ; best == nil; best = e.idle() {
		e.free.Wait()
	}
	how, alike := "", 0.1
	for _, sl := range e.slots {
		share := similarity(sl.prompt, prompt)
		if e.fault.kind == "lcp" && sl.used > 0 {
			share = max(share, 0.252)
		}
		if !sl.busy && share > alike && e.fault.kind != "slot-3" {
			best, alike = sl, share
			how = e.log.alike(share)
		}
	}
	if how == "" {
		last := int64(-1)
		if best.used > 0 {
			last = best.at.Sub(e.log.start).Microseconds()
		}
		how = e.log.selected(len(best.prompt), last)
	}
	j := job{slot: best, number: e.completions + 1, task: e.tasks, previous: best.prompt, again: e.known[prompt]}
	for _, sl := range e.slots {
		j.crowded = j.crowded || sl.busy
	}
	e.completions++
	e.tasks++
	e.known[prompt] = true
	best.busy, best.failed, best.prompt, best.task = true, false, prompt, j.task
	if e.fault.kind == "clock-step" && j.number == e.fault.at {
		e.log.jump(10 * time.Hour)
	} else if e.fault.kind == "clock-step" && j.number == e.fault.at+4 {
		e.log.jump(0)
	}
	e.log.line('I', "slot get_availabl: id %2d | task -1 | %s", best.id, how)
	e.log.line('I', "slot launch_slot_: id %2d | task %d | processing task, is_child = 0", best.id, j.task)
	e.grow(j.number)
	return j
}

// idle finds the slot that has been idle for longest, nil if none is.
func (e *Engine) idle() *slot {
	var best *slot
	for _, sl := range e.slots {
		if !sl.busy && (best == nil || sl.used < best.used) && (e.fault.kind != "slot-3" || sl.id == len(e.slots)-1) {
			best = sl
		}
	}
	return best
}

// grow takes memory and keeps it.
func (e *Engine) grow(number int) {
	if e.fault.kind == "ramp" || e.fault.kind == "plateau" && number <= e.fault.at {
		b := make([]byte, 8<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1 // memory that nobody wrote is none
		}
		e.held = append(e.held, b)
	}
}

// crowd gives the slot's state at the end: whether its task failed, and whether
// another slot is busy.
func (e *Engine) crowd(j job) (failed, crowded bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, sl := range e.slots {
		crowded = crowded || sl.busy && sl != j.slot
	}
	return j.slot.failed, crowded || j.crowded
}

// overcommit fails everything that is being worked on.
func (e *Engine) overcommit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log.line('W', "decode: failed to find a memory slot for batch of size 2048")
	for _, sl := range e.slots {
		sl.failed = sl.busy
	}
}

func (e *Engine) release(j job, prompt, tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log.timing(j.slot.id, j.task, prompt, tokens, e.o.PerToken)
	e.log.line('I', "slot      release: id %2d | task %d | stop processing: n_tokens = %d, truncated = 0", j.slot.id, j.task, prompt+tokens)
	e.turn++
	j.slot.busy, j.slot.used, j.slot.at = false, e.turn, time.Now()
	e.free.Broadcast()
}

// similarity is the share of the new prompt that the old one begins with.
func similarity(old, prompt string) float64 {
	n := 0
	for n < len(old) && n < len(prompt) && old[n] == prompt[n] {
		n++
	}
	return float64(n) / float64(max(1, len(prompt)))
}
