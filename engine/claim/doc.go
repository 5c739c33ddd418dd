// Package claim gives one piece of work at a time exclusive use of a GPU.
//
// # Nouns
//
//   - Lock: the file that whoever uses the GPU takes with flock(2), this program as well as flock(1) and the scripts
//     that a host already has. The kernel frees it when its holder ends, however it ends.
//   - Record: one claim: its label, who made it, what runs and until when.
//   - ticket: the place of a claim in the queue, a file of its own beside the lock, which its owner keeps locked: one
//     whose owner is gone is worth nothing.
//   - tree: the command of a claim and all that it starts.
//   - Guard: a process that waits for the end of the one that made the claim. It has the lock open too, so that a claim
//     that is killed gives way to the next one when nothing of its command is left, and not before.
//
// # The life of a claim
//
//	waits for its turn ──▶ holds the lock ──▶ the command runs ──▶ its tree is ended ──▶ the lock is let go
//	      │ gives up             │ too little memory    │ ends, time limit, memory floor,
//	      ▼                      ▼                      │ a signal, or we are killed (the Guard goes on)
//	   nothing was run        nothing was run           ▼
//
// First come, first served, among those that use this program: the first in the queue waits in the kernel, beside the
// flock(1) of others, and the rest wait until those before them have the lock.
//
// # Files
//
//	LOCK              never removed or replaced; one line of ours while we hold it, text of others is left as it is
//	LOCK.queue/       a ticket each for who waits, and for who holds a lock that it may not write in
//	claims.jsonl      the history: one JSON object a line when a claim begins and when it ends
package claim

import "time"

// Record is one claim: what the text in the lock file and the history say of it.
type Record struct {
	Label   string     `json:"label"`
	User    string     `json:"user"`
	PID     int        `json:"pid"`
	Command string     `json:"command"` // without secrets
	Since   time.Time  `json:"since,omitzero"`
	Until   time.Time  `json:"until,omitzero"`  // when its time is over
	Ended   *time.Time `json:"ended,omitempty"` // nil: it goes on, or its end was not written down
	How     string     `json:"how,omitempty"`   // it ended: "exit status 0", "time limit", "memory floor", …
	Text    string     `json:"text,omitempty"`  // of a holder that did not use this program: what stands in the lock file
}
