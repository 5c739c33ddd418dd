// Package store keeps the packages that are installed on this host.
//
// # On disk
//
//	<dir>/1bit-<flavour>-<id>/        a package: read-only, its manifest at its root
//	<dir>/.1bit-staging/<work>/       what an install or a removal has in hand
//	<state>/store.lock                held shared by switches, alone by removals
//	<state>/imported/<name>.json      the manifest of a directory that was taken in
//
// # What is guaranteed
//
// A package is listed if and only if it is whole: its directory appears under
// its name in one rename, after every byte was compared with the manifest and
// is on stable storage, and it disappears in one rename before anything in it
// is deleted. The rename refuses to replace: a name never changes its content.
//
//	archive ── extract, verify, sync ──▶ staging ── rename ──▶ installed ── rename ──▶ staging ── delete
//	           (killed: swept later)                (listed)                (killed: swept later)
//
// Every work folder in staging is locked by the process that uses it; the
// kernel frees the lock with the process. The next command sweeps the folders
// that nobody holds.
//
// All files of a package are written, and the large ones handed to the disk
// on the way, before the first is synced. Few files are then synced one by
// one, by many goroutines at once. Many are synced with their file system, in
// one syncfs: for 2,000 small files that takes half the time. It also waits
// for whatever else the machine writes, and tells of others' errors, so it is
// not done while much else waits (a model being downloaded), nor on a file
// system or a kernel that would not make all durable or not tell of an error.
// A file that is synced by itself stays open from its first byte until then:
// the kernel owes an error of writing to those who have the file open.
//
// # Shared blocks
//
// Where the file system can (XFS, btrfs), a file that an installed package has
// too, untouched by the look of it, begins as a clone of that. It is compared
// with the archive piece by piece and overwritten where it differs, so that
// damage does not spread. Inodes are never shared: a write through one name
// must not reach a second package.
//
// # What stays
//
// A removal, of one package or of all that nothing needs, holds the store
// alone from the first look to the last rename. A package stays that a service
// needs (fleet tells), or that a process refers to by its program, working
// directory, root, open files, maps, environment or command line. In a user's
// store the user's own processes count; in one that all accounts use, all do,
// so that it takes root, and one that even root may not read keeps everything.
//
// # Imported directories
//
// A directory of the old script's making has no manifest. Import computes one
// and keeps it in the state folder; the directory stays as it is, byte for
// byte. Without that record it is not listed until it is imported again.
package store
