// Package systemd reads units as systemd reads them and asks a running systemd about them.
//
// It knows nothing of packages. Its nouns are:
//
//   - Manager: one running systemd, the one of a user or the one of the system, over D-Bus. It
//     loads, starts and stops units and says what it has loaded (Unit).
//   - File: a unit file or drop-in on disk, read by systemd's own grammar, byte for byte.
//   - Settings: what the files of one unit amount to: the environment that its next process would
//     get, and for every variable the line it comes from, the lines it hides and the lines that
//     hide it; the commands that it would start (StartCommand), the values of which only one
//     counts (Single), and why systemd would not start it at all (Refused).
//   - Edit: a file that is not written yet. ReadSettings computes the settings as if it were,
//     so that a caller can ask who would win over a drop-in before it writes one.
//   - Entry: an entry of the journal, of a unit's processes or of systemd about them. ReadJournal
//     and FollowJournal ask journalctl for those of a JournalQuery, put lines together again that
//     journald split, and tell the gaps: what journald dropped, no longer has, or does not show
//     to this user.
//
// The two halves answer different questions. A Manager tells what is loaded; its Environment
// property leaves out environment files and so cannot tell what a process gets. The files tell
// what a reload and a start would make of them. Neither tells what a running process has: that
// is in /proc (see Processes and Listeners).
//
// Where a value depends on something that this package does not know (a specifier, the
// environment of the manager, the version of systemd), the value is marked unsure and never
// guessed. The tests hold the reading against a real systemd, with some thousand generated units:
// what it says without a mark is what their processes got.
//
// The package writes nothing. It reads the files that a unit names, /proc and the control group
// tree; the roots of the last two are parameters. It runs journalctl.
package systemd
