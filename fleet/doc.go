// Package fleet is the services of this host: which package each is configured to run, which it really runs, and
// how to change that without ever leaving it between two.
//
// # Nouns
//
//   - Host: where the units, the packages and the state of one scope (user or system) are.
//   - Service: what is known of one unit, as status shows it. Armed (loaded by the manager: the next start, also
//     one after a crash, uses it), on disk (written, not loaded) and live (what the processes run from) are
//     three facts and never mixed.
//   - Binding: the environment variables of a unit whose values lie in a package. They move together or not at
//     all.
//   - DropIn: our one file in a unit's drop-in folder.
//   - Record: one finished act, from the journal.
//
// # Files
//
//	<UnitDir>/<unit>.d/zz-1bit.conf           what systemd reads, with a section [X-1bit] for this program
//	<UnitDir>/<unit>.d/zz-1bit.conf.prev      the whole file that a rollback puts there, written ahead
//	<UnitDir>/<unit>.d/zz-1bit.conf.new,
//	<UnitDir>/<unit>.d/zz-1bit.conf.prev.new  a switch under way: the next files, later the last ones
//	<UnitDir>/<unit>.d/zz-1bit.conf.prev.N    what was in the way of a .prev, moved aside as it was
//	<StateDir>/journal.jsonl                  intents, commits and aborts, one JSON object a line
//
// The folder of the unit is locked (flock) during every change. While a restart is waited for and watched it is
// not, so that the owner can roll back at once: a lock on a byte of the journal then says that somebody watches.
// Every other change waits for that; a rollback does not, and the watching command ends without a verdict.
//
// Only a file that is exactly as this program writes it is ever replaced by a switch. What our section says is
// also understood where a person has added lines: a rollback puts the whole file away, lines and all.
//
// # A switch
//
// Both new files are first written whole under their staging names, so that no later step needs space; then the
// pair changes by two renames, each of which exchanges a staged file with the one in its place:
//
//	          active  .prev  .new  .prev.new
//	before    A       a      -     -
//	staged    A       a      N     n
//	halfway   A       n      N     a
//	in place  N       n      A     a          reload, read back
//	after     N       n      -     -
//
// An active file and its .prev carry the same generation. So whoever finds staging files after a crash can tell
// the rows apart from the files alone, goes back before "in place" and forward from there on. The journal only
// adds who and why: losing it stops nothing.
//
// # A rollback
//
// One exchange of the active file with .prev, which is whole, names the package that served before, and blocks
// the one that is left. After a first switch there is no earlier file of ours: then the active file is moved onto
// .prev, where it remembers what is blocked. A file that a rollback put in place says so, and a second rollback
// changes nothing.
//
// A return, which follows a failed restart by itself, is no rollback by hand: where there is room it writes the file
// of the package that comes back as one that a rollback may leave again, and the next .prev with it. Without room
// it is the same exchange as a rollback.
//
// # Guarantees
//
// After a crash, a full disk or a failed call at any step, systemd reads either the old file or the new one, whole,
// and the next command on the unit finishes or undoes what was begun. Nothing is changed before a manager
// answers, except by a rollback, which says "not loaded" then. Nothing is restarted unless asked for.
package fleet
