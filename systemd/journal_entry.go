package systemd

import "time"

// Entry is one entry of the journal. What it has not is empty.
type Entry struct {
	At         time.Time // by the clock of the host
	Boot       string    // 32 hexadecimal digits
	Monotonic  time.Duration
	Cursor     string
	Message    string // the bytes as they were written, which need not be UTF-8
	Missing    string // why there is no message, or not all of it: such as that it was too long to be kept
	ID         string // MESSAGE_ID, 32 hexadecimal digits: one of the ID constants, or another
	Unit       string // that it is from, or, of an entry of systemd's, that it is about
	Invocation string // of that unit, 32 hexadecimal digits
	Identifier string // SYSLOG_IDENTIFIER
	PID        int
	Priority   int               // 0 emerg … 7 debug; -1: none
	Fields     map[string]string // the others that a reader asks for: EXIT_CODE, EXIT_STATUS, UNIT_RESULT, N_RESTARTS, CPU_USAGE_NSEC, JOB_RESULT, N_DROPPED …
	Raw        []byte            // the object as journalctl wrote it
}
