package engine

import (
	"strings"
	"time"
)

// A Task is one request's stay on a slot, joined from the lines of the log.
//
// Its times are those of the log's own clock, or of reading where the lines
// carry none. They never run back within a task; where the clock was set in its
// course, TotalMS still tells how long it took.
type Task struct {
	Router, Slot, ID int
	Life             int     // of the server, from 1: task ids start again in each
	How              string  // the slot was selected; "": the log does not say
	NeverUsed        bool    // the slot had no task before in this life
	Similarity       float64 // of a selection by LCP
	Child            bool    // one of several answers to one request
	Selected         time.Duration
	Launched         time.Duration
	Released         time.Duration
	Finished         bool // it was released; else the log or the server ended before
	Prompt           int  // tokens of the whole prompt; 0: the log does not say
	PromptTokens     int  // of those, evaluated: the others came from a cache
	Tokens           int  // generated
	Context          int  // tokens on the slot at the end
	PromptMS, EvalMS float64
	TotalMS          float64
	GraphsReused     int // since the process started
	Truncated        bool
	Cancelled        bool       // nobody waited for its end
	Error            string     // it was answered with
	Guard            []LogEvent // the first guard lines that fall into it and no other
	GuardLines       int        // all of them
}

// note takes over what a line says of its task.
func (t *Task) note(ev *LogEvent) {
	switch ev.Kind {
	case LogPrompt:
		t.Prompt = ev.Tokens
	case LogGraphs:
		t.GraphsReused = ev.GraphsReused
	case LogTiming:
		switch ev.Phase {
		case PhasePrompt:
			t.PromptTokens, t.PromptMS = ev.Tokens, ev.MS
		case PhaseEval:
			t.Tokens, t.EvalMS = ev.Tokens, ev.MS
		case PhaseTotal:
			t.TotalMS = ev.MS
		}
	case LogRelease:
		t.Finished, t.Context, t.Truncated = true, ev.Tokens, ev.Truncated
		t.Released = max(t.Launched, ev.At())
	case LogCancel:
		t.Cancelled = true
	case LogError, LogContext:
		t.Error = strings.Clone(ev.Detail)
	}
}
