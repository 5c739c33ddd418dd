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
//   - DropIn: our file in a unit's drop-in folder that systemd reads.
//   - Hold: a reason for which a service stays where it is, until somebody lifts it or its time is over.
//   - Proposed: a switch that somebody suggests, and its owner may take.
//   - Record: one finished act, from the journal.
//   - Survey: all services of some managers, and the units that look as if they should be among them.
//
// # Files
//
//	<UnitDir>/<unit>.d/zz-1bit.conf           what systemd reads, with a section [X-1bit] for this program
//	<UnitDir>/<unit>.d/zz-1bit.conf.prev      the whole file that a rollback puts there, written ahead
//	<UnitDir>/<unit>.d/zz-1bit.conf.new,
//	<UnitDir>/<unit>.d/zz-1bit.conf.prev.new  a switch under way: the next files, later the last ones
//	<UnitDir>/<unit>.d/zz-1bit.conf.prev.N    what was in the way of a .prev, moved aside as it was
//	<UnitDir>/<unit>.d/zz-1bit.hold           a hold; it outlives every switch and rollback
//	<StateDir>/proposals/<unit>.json          a proposal
//	<StateDir>/journal.jsonl                  intents, commits and aborts, one JSON object a line
//
// The folder of the unit is locked (flock) during every change. While a restart is waited for and watched it is
// not, so that the owner can roll back at once: a lock on a byte of the journal then says that somebody watches.
// Every other change waits for that; a rollback does not, and the watching command ends without a verdict.
//
// The owner is asked, where he is, between two looks: the first one finds what he has to know, the second one, under the
// lock, refuses when that has changed while he thought.
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
// # An adoption
//
// It writes the first file of ours by the same way, with the values that hold already, and names the lines of the
// owner's files that it took over, each with a digest. No file of the owner's is ever written. Every later file
// carries these lines, and the commands that ExecStart= became, on: only variables move. Whoever removes our files
// has the unit as it was.
//
// # A rollback
//
// One exchange of the active file with .prev, which is whole, names the package that served before, and blocks
// the one that is left. After a first switch there is no earlier file of ours: then the active file is moved onto
// .prev, where it remembers what is blocked. A file that a rollback put in place says so, and a second rollback
// changes nothing. Its undoing is the same exchange, or move, once more; a package's own block in its own active file
// counts for nothing, so no line of it has to change.
//
// A return, which follows a failed restart by itself, is no rollback by hand: where there is room it writes the file
// of the package that comes back as one that a rollback may leave again, and the next .prev with it. Without room
// it is the same exchange as a rollback.
//
// The states that our two files can be in, told apart by the files alone. X is armed or was, Y served before X, W
// before Y; "X" is the file of a switch, an undo or an adoption, "Y<X" one that came in place of X's.
//
//	state         active  .prev  rollback            --again              --undo
//	bare          -       -      refused             refused              refused
//	adopted       X       -      nothing to do       refused              nothing to do
//	first switch  X       -      X moves to .prev    refused              nothing to do
//	put away      -       X      nothing to do       refused              X moves back
//	switched      X       Y<X    exchange            W<X, X written       nothing to do
//	                                                 (no W: X moves to .prev)
//	rolled back   Y<X     X      nothing to do       W<Y, Y<X written     exchange
//	                                                 (no W: Y<X moves to .prev)
//	further       W<Y     Y<X    nothing to do       as from rolled back  exchange
//	undone        Y<X     W<Y    nothing to do       exchange             X, Y<X written
//	returned      Y<X     W<Y    exchange            as from switched     X, Y<X written
//
// "undone" is what an undo after --again leaves; "returned" says Act=return and may lack its .prev where Y was the
// first. A .prev that is missing or damaged is written again from what the active file says, as far as that goes. An
// active file that cannot be read is exchanged with .prev all the same, and --again refuses. Lines of a person's
// change nothing of this, but that what writes a file anew refuses or puts them aside, and never loses them. What is
// blocked is passed over wherever a way leads, but for an undo, which lifts the block.
//
// What is written is staged and put in place as by a switch, so the rows of the table above hold for it too, and the
// next command finishes or undoes it. All else is one rename.
//
// # Guarantees
//
// After a crash, a full disk or a failed call at any step, systemd reads either the old file or the new one, whole,
// and the next command on the unit finishes or undoes what was begun. Nothing is changed before a manager
// answers, except by a rollback and an unswitch, which say "not loaded" then; the next
// command has that loaded. Nothing is restarted unless asked for.
package fleet
