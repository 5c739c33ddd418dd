package version

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// ErrNotComparable is wrapped by the error of [Compare] about tags that have
// no order: neither is older.
var ErrNotComparable = errors.New("not comparable")

// Compare returns -1 if a is older than b, 1 if it is newer and 0 if both have
// the same rank, which does not make them the same tag ([Tag.Same]). The error
// wraps [ErrNotComparable] and says why.
func Compare(a, b Tag) (int, error) {
	if a.Same(b) {
		return 0, nil
	}
	for _, t := range []Tag{a, b} {
		if t.series == "" {
			return 0, fmt.Errorf("%w: %q has no place in an order: %s", ErrNotComparable, t.text, t.reasonOr())
		}
	}
	switch {
	case a.source != b.source:
		return 0, fmt.Errorf("%w: %s is a tag of %s, %s one of %s", ErrNotComparable, a.text, a.source, b.text, b.source)
	case a.series != b.series:
		return 0, fmt.Errorf("%w: %s is of the series %s, %s of %s", ErrNotComparable, a.text, a.series, b.text, b.series)
	}
	c := cmp.Or(slices.Compare(a.numbers, b.numbers), comparePre(a.pre, b.pre), cmp.Compare(a.after, b.after))
	if c == 0 && a.variant && a.hash != b.hash {
		return 0, fmt.Errorf("%w: %s and %s differ in a hash, which has no order", ErrNotComparable, a.text, b.text)
	}
	return c, nil
}

func (t Tag) reasonOr() string { return cmp.Or(t.reason, "it is empty") }

// comparePre compares what stands before a release; nothing there, the release
// itself, is the newest.
func comparePre(a, b string) int {
	return semver.New(0, 0, 0, a, "").Compare(semver.New(0, 0, 0, b, ""))
}

// The answers of [Describe].
const (
	Newer         = "newer"
	Older         = "older"
	SameRank      = "same rank"
	SameTag       = "same"
	NotComparable = "not comparable"
)

// Describe says in a word what the tag to is to the tag from: [Newer],
// [Older], [SameTag], [SameRank] of two different tags, or [NotComparable].
func Describe(from, to string) string {
	a, aErr := Parse(from)
	b, bErr := Parse(to)
	if aErr != nil || bErr != nil {
		return NotComparable
	}
	c, err := Compare(b, a)
	switch {
	case err != nil:
		return NotComparable
	case c > 0:
		return Newer
	case c < 0:
		return Older
	case a.Same(b):
		return SameTag
	}
	return SameRank
}
