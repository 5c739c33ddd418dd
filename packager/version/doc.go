// Package version reads the tags of releases and puts them in order.
//
// A [Tag] is a release's name in its own spelling, which stays as it is:
// v2026.040 never becomes 2026.40, for an address made of that would lead
// nowhere. [Parse] takes it apart:
//
//	v2026.40.1-rc.2-5-gfeedbee-dirty+rocm7
//	| |        |    |          |     build: the same rank, another package
//	| |        |    |          what was built is not the commit
//	| |        |    git describe: five commits after the tag; -0-g… is the tag
//	| |        before the release
//	| numbers, as many as there are; leading zeros say nothing
//	prefix
//
// # Series
//
// Only tags of one series have an order. A series is where the tags come from,
// which only the caller knows ([Tag.Of]), and their pattern ([Tag.Series]): b6123
// is of the series "bN", v0.3.0 of "N", v2026.40 of "YYYY", release_20260513.0
// of "release_YYYYMMDD". A v before the first number makes no difference, nor
// does the case of letters. [Compare] answers [ErrNotComparable] across series:
// 26.8 is not older than 2026.40 because 26 is less than 2026.
//
// A tag that is a hash, or that cannot be told from one, has no place in any
// series; [Tag.Reason] says why. One that names a variant of another tag and
// the commit, b10472-mix-0a1b2c3, is of the variant's own series.
//
// # Rank
//
// Within a series numbers compare as numbers, part by part, a missing part
// being zero. What stands before a release compares as semantic versions do,
// with letters and digits parted and case folded: alpha5 < rc < rc1 = rc.1 <
// RC2 < rc10 < the release. A lone number, v2026.40-1, is taken for that too,
// as semantic versions say, and not for a packager's revision; [Tag.Describe]
// says so. Then counts how many commits after the tag it is.
//
// Two tags may share a rank (v2026.040 and v2026.40, +rocm7 and +vulkan,
// rc4 and rc.4): [Compare] says 0, [Tag.Same] false, and which of them is
// meant is for a person to say.
package version
