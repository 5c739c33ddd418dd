package claim

import "cmp"

// DefaultPath is the lock of a host that names no other: one for all its users, whatever their environment, and gone
// with the boot that it belongs to.
const DefaultPath = "/run/lock/1bit-gpu.lock"

// Lock is a file that is taken with flock(2), and what tells who holds it.
type Lock struct {
	Path string
	Proc string // "": /proc
}

func (l Lock) proc() string { return cmp.Or(l.Proc, "/proc") }

// Usable tells why the lock cannot be taken by this user, nil if it can. It takes nothing, and makes nothing where the
// file is not there yet.
func (l Lock) Usable() error { return nil }

// Holder tells who holds the lock. held without a record: nobody tells who.
func (l Lock) Holder() (holder *Record, held bool, err error) { return nil, false, nil }

// Waiting lists the claims that wait for the lock, first come first.
func (l Lock) Waiting() ([]Record, error) { return nil, nil }
