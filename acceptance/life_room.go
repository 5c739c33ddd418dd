package acceptance

import (
	"golang.org/x/sys/unix"
)

// Watchdogs of what a life writes.
const (
	watchLogUnread = "server-log-unread" // GiB that the server has written and nobody has read: it floods its log
	watchLogSize   = "server-log"        // GiB
	watchDisk      = "disk-free"         // GiB that are left where the evidence is
)

// room is what a life may take of the disk, in bytes. Zero: no limit.
type room struct {
	unread, log, free int64
	short             bool // there was not enough
}

// Limits of the room, if there is plenty.
const (
	mostUnread = 256 << 20
	leastFree  = 1 << 30
	logShare   = 4  // the log may take one part in so many of what is free when the life begins
	freeShare  = 10 // and one in so many stays free
)

// measure sets the limits by what is free now. What is set already stays.
func (r *room) measure(dir string) {
	if r.unread == 0 {
		r.unread = mostUnread
	}
	free, ok := freeBytes(dir)
	if ok && r.log == 0 {
		r.log = free / logShare
	}
	if ok && r.free == 0 {
		r.free = min(leastFree, free/freeShare)
	}
}

// freeBytes tells how much may still be written to the disk of a folder.
func freeBytes(dir string) (int64, bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * fs.Bsize, true
}

// roomLeft looks whether the server's log, or anything else, takes the disk away.
func (l *life) roomLeft() {
	size, unread, err := l.log.unread()
	if err != nil {
		return // who reads the log tells
	}
	if !(unread <= l.room.unread) {
		l.tooMuch(watchLogUnread, unread, l.room.unread)
	}
	if l.room.log > 0 && !(size <= l.room.log) {
		l.tooMuch(watchLogSize, size, l.room.log)
	}
	if free, ok := freeBytes(l.dir); ok && !(free >= l.room.free) {
		l.tooMuch(watchDisk, free, l.room.free)
	}
}

func (l *life) tooMuch(what string, bytes, limit int64) {
	l.log.giveUp()
	l.mu.Lock()
	l.room.short = true
	l.mu.Unlock()
	gib := func(n int64) float64 { return float64(n>>20) / (1 << 10) }
	l.bark(watchdogRecord{what, gib(bytes), gib(limit)})
}
