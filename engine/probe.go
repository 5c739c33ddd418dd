package engine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Faces of a probe beyond those of one answer.
const (
	FaceTransport = "transport" // no answer came
	FaceDiffers   = "differs"   // two identical greedy requests gave different tokens on a quiet server
)

// probePrompt is what Probe asks. Its answer does not matter; it must only be
// the same twice.
const probePrompt = "Seven swans swam over the silver lake while the old clock struck nine; then the keeper of the lighthouse said:"

// probeTokens is how many tokens Probe asks for: the first of a request is the
// one that a never-used slot got wrong, the rest shows drift.
const probeTokens = 24

// A ProbeError says why a probe failed: the face and what was seen.
type ProbeError struct {
	Face   string
	Detail string
	Err    error // the transport's error, if that is what failed
}

func (e *ProbeError) Error() string { return e.Face + ": " + e.Detail }

// Unwrap gives the transport's error.
func (e *ProbeError) Unwrap() error { return e.Err }

// Probe sends the same greedy request twice, one after the other, and asks for
// the log-probability of every token. It fails with a *ProbeError if an answer
// has a fault, or if the two differ in tokens while the server did nothing
// else. Answers that differ on a busy server are no failure: other requests in
// the same batch change the rounding.
func Probe(ctx context.Context, c *Client) error {
	const pairs = 3
	for range pairs {
		busyBefore := busySlots(ctx, c)
		first, err := ask(ctx, c)
		if err != nil {
			return err
		}
		second, err := ask(ctx, c)
		if err != nil {
			return err
		}
		if sameTokens(first, second) {
			return nil
		}
		if quiet(busyBefore, busySlots(ctx, c), first.SlotID, second.SlotID) {
			return &ProbeError{Face: FaceDiffers, Detail: fmt.Sprintf(
				"two identical greedy requests gave %q and %q, one after the other, with no other slot busy",
				first.Content, second.Content)}
		}
	}
	return nil
}

// ask sends the probe once and judges the answer.
func ask(ctx context.Context, c *Client) (*Answer, error) {
	a, err := c.Complete(ctx, CompletionRequest{
		Prompt: probePrompt, NPredict: probeTokens, NProbs: 1, ReturnTokens: true,
	})
	if err != nil {
		return nil, &ProbeError{Face: FaceTransport, Detail: err.Error(), Err: err}
	}
	if faults := a.Faults(); len(faults) > 0 {
		return nil, &ProbeError{Face: faults[0].Face, Detail: faults[0].Detail}
	}
	if a.TokensPredicted == 0 && a.Content == "" {
		return nil, &ProbeError{Face: FaceNotObserved, Detail: "the answer has no tokens"}
	}
	return a, nil
}

func sameTokens(a, b *Answer) bool {
	x, y := a.ids(), b.ids()
	if len(x) > 0 && len(y) > 0 {
		return slices.Equal(x, y)
	}
	return a.Content == b.Content
}

// busySlots reads /slots; nil if the server does not tell, or not at once.
func busySlots(ctx context.Context, c *Client) []SlotState {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	slots, err := c.Slots(ctx)
	if err != nil {
		return nil
	}
	return slots
}

// quiet tells whether no slot but our own two worked between two readings of
// /slots: none was busy at either, and none took a task in between. Our own may
// still read as busy for a moment after the answer. A server that does not tell
// counts as quiet.
func quiet(before, after []SlotState, ours ...int) bool {
	task := map[int]int{}
	for _, s := range before {
		if s.Processing {
			return false
		}
		task[s.ID] = s.TaskID
	}
	for _, s := range after {
		if slices.Contains(ours, s.ID) {
			continue
		}
		if was, known := task[s.ID]; s.Processing || known && was != s.TaskID {
			return false
		}
	}
	return true
}
