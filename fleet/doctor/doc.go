// Package doctor looks for everything about a host that would bite its owner: before a service dies of it, and before
// a switch or a reboot does not do what it should.
//
// # Nouns
//
//   - Check: one thing to look for, with the reason why it would bite and a remedy. Each has a file of its own, which
//     holds one function that makes it: check_linger.go holds linger.
//   - Finding: one place at which a check found something.
//   - look: what the checks look at. What several of them need (the services of all hosts, the installed packages) is
//     read once, when the first one asks.
//
// # What a check answers
//
// Every check ends in one of three states. It found something; it looked and all is well; or it could not look, wholly
// or in part: then it says "unknown" and why, never that all is well. A check adds what it finds and returns an error
// for what it could not see, both at once where it saw a part.
//
// Nothing here changes the host, restarts a service or asks the network, with one exception that status shares: what a
// command left half done in a service of the first host is finished or undone when its services are read.
//
// # Root
//
// What is read of /proc, /sys, /etc, /run and /var is read below [Options.Root], so that a recorded tree can stand in
// for a machine that is not at hand. The places of packages, state and units are those that the hosts name.
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
