package acceptance

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A remark is what there is to tell of lives beside their states. It decides
// nothing.
type remark struct {
	what  string
	first int // arm
	arms  int
}

// remark looks at what served and how it ended when it was told to.
func (j *judging) remark(a *arm) {
	if s := a.startup; s != nil && s.Problem == "" && s.ServerPID != 0 {
		switch name := s.Binary.Name; {
		case name == "":
			j.add(a, "which program served could not be told")
		case filepath.IsAbs(name):
			j.outside[fmt.Sprintf("%s (%s)", name, cmp.Or(s.Binary.Digest, "its bytes could not be read"))] = true
		case s.Binary.Digest == "":
			j.add(a, "the bytes that served as "+name+" could not be read")
		}
	}
	if a.end == nil || a.end.Stopped == nil {
		return
	}
	switch s := a.end.Stopped; {
	case crashed(unix.Signal(s.Signal)):
		j.add(a, "told to end, the server crashed: "+s.Status+"; that is no fault of the load")
	case s.Killed && a.end.Why == whyDone:
		j.add(a, fmt.Sprintf("told to end, the server had not within %s, and was killed", time.Duration(s.GraceMS)*time.Millisecond))
	}
}

// crashed tells whether a signal is one that a program brings on itself.
func crashed(s unix.Signal) bool {
	switch s {
	case unix.SIGSEGV, unix.SIGABRT, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGSYS, unix.SIGTRAP:
		return true
	}
	return false
}

func (j *judging) add(a *arm, what string) {
	for i := range j.remarks {
		if j.remarks[i].what == what {
			j.remarks[i].arms++
			return
		}
	}
	j.remarks = append(j.remarks, remark{what, a.start.Arm, 1})
}

// remarked are the notes on lives: one for what there is to tell of several.
func (j *judging) remarked() []string {
	var notes []string
	for _, r := range j.remarks {
		where := fmt.Sprintf("arm %d", r.first)
		if r.arms > 1 {
			where = fmt.Sprintf("arm %d and %d others", r.first, r.arms-1)
		}
		notes = append(notes, where+": "+r.what)
	}
	return notes
}
