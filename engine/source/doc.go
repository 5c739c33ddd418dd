// Package source asks a git checkout what was built from it: which commit, with
// which changes that no commit holds, whether its history carries a fix, and
// what lies between two commits.
//
// # Asking git
//
// Everything is asked of git(1), version 2.39 or newer, through its plumbing;
// nothing is ever written to the checkout and nothing fetched for it. The
// variables GIT_… of the caller are left out, except those that say where the
// user's own configuration lies: GIT_DIR or GIT_INDEX_FILE of a surrounding hook
// would lead to another repository. Replacements and grafts are ignored,
// locks not taken, hooks, external differs and the file system monitor not
// run. Where git would run what the checkout configures all the same (filters
// when it compares files, drivers when it merges) it is asked in a repository
// of our own that borrows the checkout's objects. A folder inside of a checkout is not taken for it: a tarball unpacked
// below another project would get that project's commit.
//
// # Carried
//
// [Checkout.Carries] answers yes, no or unknown. Let A be the commits of the
// pin's history that apply the fix: the fix itself; every commit with the same
// patch (a cherry-pick, a rebased copy), to every byte with three lines of
// context, wherever in the file, found by git's verbatim patch id; and
// every commit that reverts a revert. Let R be those that undo it: the reverse
// patch, or a message "This reverts commit …" that names one of A, or names a
// merge that brought one in. Then what counts are the last of them, those that
// no other one follows:
//
//	all of A  yes
//	all of R  no
//	of both   unknown: applied on one branch, reverted on another
//	none      no
//
// A yes or no becomes unknown when there is reason to doubt it: a patch
// that is the same but for white space, a later message that speaks of a revert
// and of the fix in other words, a trailer "(cherry picked from
// commit …)" on another patch, a merge that has the fix's files neither as its
// side with the fix nor as git merges them by itself, a shallow history that may have lost something that would
// follow, a partial clone without the files to compare. A commit that is not
// there at all is unknown too. What nobody can see in history, such as a fix
// that somebody undid by hand within another change, is not seen here.
package source
