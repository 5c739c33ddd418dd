package engine

import "time"

// A Task is one request's stay on a slot, joined from the lines of the log.
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
	PromptTokens     int  // of those, evaluated
	Tokens           int  // generated
	Context          int  // tokens on the slot at the end
	PromptMS, EvalMS float64
	TotalMS          float64
	GraphsReused     int // since the process started
	Truncated        bool
	Cancelled        bool       // nobody waited for its end
	Error            string     // it was answered with
	Guard            []LogEvent // first guard lines that fall into it and no other
	GuardLines       int        // all of them
}

// A Joiner makes tasks of events.
type Joiner struct {
	Done    func(Task)
	Loose   int // guard lines that could be of several tasks, or of none
	Orphans int // releases and timings whose launch was not seen
}

// Add takes the next event.
func (j *Joiner) Add(ev LogEvent) {}

// Flush ends the log: what still runs is done, unfinished.
func (j *Joiner) Flush() {}
