// Package doctor looks for everything about a host that would bite its owner.
package doctor

import "context"

// Check is one thing to look for. Each has a file of its own.
type Check struct {
	Name   string // such as linger
	Reason string // why it would bite, one sentence
	Remedy string // what to do, one sentence, as a command where there is one; a finding may have a better one
	find   func(ctx context.Context, l *look, add adder) error
}

// Finding is something that a check has found.
type Finding struct {
	Check  string `json:"check"`
	Where  string `json:"where"` // a unit, a file with its line, a package, a device; "" for the host
	What   string `json:"what"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// adder takes a finding; an empty remedy means that of the check.
type adder func(where, remedy, what string, args ...any)

// look is what the checks look at, read once.
type look struct{}
