package engine

import "time"

// A Reply is what the wire knows of one request's answer, in the order in which
// the answers came.
type Reply struct {
	Slot   int  // -1: it names none, as errors do
	Tokens int  // generated; 0 or less: not known
	Cut    bool // the answer was not received whole
	// Sent and Received are on the clock of the tasks' times. Zero: not known.
	Sent, Received time.Duration
}

// MatchReplies finds for each reply the task that made it: its index in tasks,
// or -1.
func MatchReplies(tasks []Task, replies []Reply) []int { return nil }
