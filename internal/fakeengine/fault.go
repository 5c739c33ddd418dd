package fakeengine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A fault is what goes wrong and at which completion, counted from 1.
type fault struct {
	kind string
	at   int
}

func parseFault(s string) (fault, error) {
	kind, at, given := strings.Cut(s, "@")
	f := fault{kind: kind, at: 3}
	if given {
		n, err := strconv.Atoi(at)
		if err != nil || n < 1 {
			return f, fmt.Errorf("read %s=%s: no number after the @", FaultVariable, s)
		}
		f.at = n
	}
	if kind != "" && !slices.Contains(Faults(), kind) {
		return f, fmt.Errorf("read %s=%s: no fault of that name; there are %s", FaultVariable, s, strings.Join(Faults(), ", "))
	}
	return f, nil
}

// Faults lists what can go wrong. Some of it is no fault of an engine and there
// to be taken for none.
func Faults() []string {
	return []string{
		"guard-v1", "guard-v2", // a guard line in the log, and on it goes
		"guard-null", // a guard line, and a null log-probability in the answer
		"abort",      // guard line, abort text, exit 134
		"abort-lost", // abort text alone, exit 134
		"null",       // a null log-probability, the log is silent
		"no-probs",   // log-probabilities left out

		"utf8",        // an invalid byte in the middle
		"utf8-cut",    // a character cut at the limit: legal
		"replacement", // U+FFFD
		"question",    // nothing but question marks
		"token-zero",  // nothing but the token of id 0
		"empty-text",  // tokens without text
		"no-deltas",   // status 200 without any token
		"json", "format", "status", "unavailable", "loading",
		"in-band", // status 200 with an error inside

		"context",        // one request gets the 500 of a full context
		"overcommit",     // every request that is being worked on gets it
		"exceed-context", // 400: the prompt alone is too long

		"leak",          // the answer carries the nonce of the slot's previous request
		"differ",        // from then on identical requests get different answers
		"numeric",       // under load the second-likeliest token where it is nearly as likely
		"corrupt-load",  // under load another token than the likeliest
		"corrupt-text",  // under load the right tokens and another text
		"corrupt-shape", // under load what numeric does, and then nothing but one character
		"drift",         // under load the same tokens with other log-probabilities
		"hang", "stall", // never answers; half an answer, then nothing
		"reset", "cut", // the connection is closed without an answer; after half of one
		"crash",  // exit 139 within a request
		"exit-0", // ends after an answer
		"exit-134", "exit-137", "exit-139",
		"assert",          // an abort text that is not about NaN, exit 134 after an answer
		"hsa",             // the GPU runtime reports an error in the log
		"restart",         // after an answer the process is replaced by another on the same port; task ids start again
		"ramp", "plateau", // each completion takes 8 MiB for ever; until K of them did

		"one-slot",   // makes one slot, whatever was asked
		"slot-3",     // uses slot 3 alone
		"lcp",        // selects by the beginning of the prompt, or says so
		"clock-step", // the log's clock jumps by ten hours, and back
		"cpu-only",   // the backend does not load
		"partial",    // some of the layers are offloaded

		"start-exit", "start-oom", "start-hsa-oom", "start-hang",
	}
}

// Formats lists the looks of the log.
func Formats() []string {
	return []string{
		"",       // 2026: time and level before each line
		"bare",   // no prefix
		"router", // the port of a router's child, then time and level
		"old",    // 2025: no prefix, LRU without the number of tokens, timing over several lines
	}
}
