package systemd

import "time"

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
}
