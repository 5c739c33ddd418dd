package systemd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// JournalQuery says which entries of the journal to read. Those of a unit are what its processes wrote and what systemd,
// journald and systemd-coredump wrote about it.
type JournalQuery struct {
	Scope  Scope     // "" is ScopeUser
	Unit   string    // "": every unit of the scope
	Kernel bool      // the kernel's entries; with a Unit both
	Since  time.Time // zero: from the first one that there is
	Until  time.Time // zero: to the last one
	After  string    // cursor of an entry: only what comes after it
	IDs    []string  // only entries with one of these MESSAGE_IDs; none: all
	UID    int       // whose user manager, where root asks for another's; 0: our own

	// Identifier is the SYSLOG_IDENTIFIER of the unit's processes: the base name of its program, or its
	// SyslogIdentifier=. journald cannot tell the unit of a process of a user's that has ended before it looks, as one
	// does that fails at once; with an Identifier its lines are read too, and have no Unit. "": they are not.
	Identifier string
}

// journalFields are the fields that are read. The command line of a process is none of them, for it may hold a secret;
// nor is a core that is kept in the journal.
const journalFields = "MESSAGE,MESSAGE_ID,PRIORITY,SYSLOG_IDENTIFIER,SYSLOG_FACILITY,SYSLOG_PID,ERRNO,N_DROPPED," +
	"UNIT,USER_UNIT,INVOCATION_ID,USER_INVOCATION_ID,JOB_ID,JOB_TYPE,JOB_RESULT,UNIT_RESULT,EXIT_CODE,EXIT_STATUS,COMMAND,EXECUTABLE," +
	"N_RESTARTS,N_PROCESSES,CPU_USAGE_NSEC,MEMORY_PEAK,MEMORY_SWAP_PEAK," +
	"COREDUMP_UNIT,COREDUMP_USER_UNIT,COREDUMP_PID,COREDUMP_UID,COREDUMP_COMM,COREDUMP_EXE,COREDUMP_SIGNAL,COREDUMP_SIGNAL_NAME," +
	"COREDUMP_TIMESTAMP,COREDUMP_FILENAME,COREDUMP_TRUNCATED," +
	"OBJECT_PID,OBJECT_COMM,OBJECT_SYSTEMD_UNIT,OBJECT_SYSTEMD_USER_UNIT,OBJECT_SYSTEMD_INVOCATION_ID," +
	"_BOOT_ID,_HOSTNAME,_TRANSPORT,_STREAM_ID,_LINE_BREAK,_PID,_UID,_COMM,_EXE,_KERNEL_DEVICE,_KERNEL_SUBSYSTEM," +
	"_SYSTEMD_UNIT,_SYSTEMD_USER_UNIT,_SYSTEMD_OWNER_UID,_SYSTEMD_INVOCATION_ID"

// args are the arguments of journalctl. A Since beside an After is left to the reader: journalctl takes but one.
func (q JournalQuery) args() ([]string, error) {
	terms, err := q.terms()
	if err != nil {
		return nil, err
	}
	// Without --all a value of more than 4 KiB is null; the reader bounds what it holds of one by itself.
	args := []string{"--no-pager", "--quiet", "--output=json", "--all", "--output-fields=" + journalFields}
	switch {
	case q.After != "":
		// Not --after-cursor: where the entry is gone that passes over the one after it.
		args = append(args, "--cursor="+q.After)
	case !q.Since.IsZero():
		args = append(args, "--since="+stamp(q.Since))
	}
	if !q.Until.IsZero() {
		args = append(args, "--until="+stamp(q.Until))
	}
	args = append(args, "--")
	for i, term := range terms {
		if i > 0 {
			args = append(args, "+")
		}
		args = append(args, term...)
	}
	return args, nil
}

// stamp spells a time for journalctl, whatever the time zone.
func stamp(t time.Time) string {
	return fmt.Sprintf("@%d.%06d", t.Unix(), t.Nanosecond()/1000)
}

// terms are the matches, each of them enough: of one, values of the same field are alternatives and different fields
// must all be there. Without any, everything matches. Fields that begin with an underscore are journald's word; the
// others are anyone's, so that each goes with one of the former, as in journalctl itself.
func (q JournalQuery) terms() ([][]string, error) {
	var terms [][]string
	add := func(matches ...string) { terms = append(terms, matches) }
	if q.Unit != "" && !validUnitName(unitName(q.Unit)) {
		return nil, fmt.Errorf("read the journal of %q: that is not the name of a unit", q.Unit)
	}
	if !q.Kernel || q.Unit != "" {
		q.addUnit(add)
	}
	if q.Kernel {
		add("_TRANSPORT=kernel", "SYSLOG_FACILITY=0") // programs write into the kernel's log with others
	}
	if len(terms) == 0 && len(q.IDs) > 0 {
		add("_UID=0")
	}
	if len(q.IDs) > 0 {
		for i := range terms {
			for _, id := range q.IDs {
				if strings.Trim(id, "0123456789abcdef") != "" || len(id) != 32 {
					return nil, errors.New("read the journal: a MESSAGE_ID is 32 hexadecimal digits")
				}
				terms[i] = append(terms[i], "MESSAGE_ID="+id)
			}
		}
	}
	if len(terms) > 0 { // what tells of gaps, whatever else is asked for
		terms = append(terms, q.lost()...)
	}
	return terms, nil
}

// addUnit adds the matches of the unit.
func (q JournalQuery) addUnit(add func(...string)) {
	coredump := func(field, unit string) {
		if len(q.IDs) == 0 || slices.Contains(q.IDs, IDCoredump) {
			// It has given up its privileges by then, so its uid tells nothing.
			add("MESSAGE_ID="+IDCoredump, field+"="+unit, "_COMM=systemd-coredum")
		}
	}
	unit := unitName(q.Unit)
	switch {
	case q.Scope == ScopeSystem && q.Unit == "": // everything
	case q.Scope == ScopeSystem:
		add("_SYSTEMD_UNIT=" + unit)
		add("_PID=1", "UNIT="+unit)
		add("_UID=0", "OBJECT_SYSTEMD_UNIT="+unit)
		coredump("COREDUMP_UNIT", unit)
	case q.Unit == "":
		add("_SYSTEMD_UNIT=" + q.manager())
		add("_UID=0", "OBJECT_SYSTEMD_UNIT="+q.manager())
		coredump("COREDUMP_UNIT", q.manager())
	default:
		uid := q.uid()
		add("_SYSTEMD_USER_UNIT="+unit, "_SYSTEMD_OWNER_UID="+uid)
		add("USER_UNIT="+unit, "_UID="+uid)
		add("_UID=0", "OBJECT_SYSTEMD_USER_UNIT="+unit, "OBJECT_SYSTEMD_UNIT="+q.manager())
		coredump("COREDUMP_USER_UNIT", unit)
		if q.Identifier != "" {
			add("_UID="+uid, "_TRANSPORT=stdout", "SYSLOG_IDENTIFIER="+q.Identifier)
		}
	}
}

// lost are the matches of what journald says of messages that it has not kept. It counts the messages of all units of
// a user's manager, and those of the manager itself, as one.
func (q JournalQuery) lost() [][]string {
	var terms [][]string
	switch {
	case q.Kernel && q.Unit == "":
	case q.Scope == ScopeSystem && q.Unit != "":
		terms = append(terms, []string{"_UID=0", "MESSAGE_ID=" + IDSuppressed, "OBJECT_SYSTEMD_UNIT=" + unitName(q.Unit)})
	case q.Scope == ScopeSystem:
		terms = append(terms, []string{"_UID=0", "MESSAGE_ID=" + IDSuppressed})
	default:
		terms = append(terms, []string{"_UID=0", "MESSAGE_ID=" + IDSuppressed, "OBJECT_SYSTEMD_UNIT=" + q.manager()})
	}
	if q.Kernel {
		terms = append(terms, []string{"_UID=0", "MESSAGE_ID=" + IDKernelMissed})
	}
	return terms
}

func (q JournalQuery) uid() string {
	if q.UID != 0 {
		return strconv.Itoa(q.UID)
	}
	return strconv.Itoa(os.Getuid())
}

// manager is the unit of the system that runs the user's manager.
func (q JournalQuery) manager() string { return "user@" + q.uid() + ".service" }

// wants says whether an entry was asked for, and does not only tell of gaps.
func (q JournalQuery) wants(e Entry) bool {
	switch {
	case len(q.IDs) > 0 && !slices.Contains(q.IDs, e.ID):
		return false
	case q.After != "" && e.At.Before(q.Since):
		return false
	case q.Identifier != "" && e.Identifier == q.Identifier && e.Unit != "" && e.Unit != unitName(q.Unit):
		return false // of the same program in another unit
	}
	return true
}
