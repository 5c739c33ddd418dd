package version

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// MaxTag is the longest tag that is read, in bytes.
const MaxTag = 128

// Tag is a release's name, taken apart. The zero Tag has no place in any
// series.
type Tag struct {
	text, source string

	series  string   // "" if it has no order
	reason  string   // why it has none
	numbers []uint64 // without zeros at the end
	pre     string   // canonical: "rc.1"
	after   uint64   // commits after the tag
	hash    string   // of git describe, or the variant's own
	variant bool     // it names a commit by itself
	dirty   bool
	build   string

	semver string
}

var (
	charset = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z._+/-]*$`)
	// git describes by at least four digits of a hash. Fewer than seven are
	// too few to tell a hash from a word.
	described      = lazyregexp.New(`^(.*)-([0-9]+)-g([0-9a-f]{7,64})$`)
	maybeDescribed = lazyregexp.New(`-[0-9]+-g[0-9a-f]{4,}(?:$|[-+])`)
	// prefix, numbers and what follows them
	shape = lazyregexp.New(`^((?:[a-z]+[._/-])*[a-z]*)([0-9]+(?:\.[0-9]+)*)(.*)$`)
	// A pre-release after a hyphen is whatever stands there; without one it
	// must be a word that is known for it.
	preRelease = lazyregexp.New(`^(?:-|[._]?((?:alpha|beta|dev|pre|preview|rc)(?:[0-9._-]|$)))`)
	preWord    = lazyregexp.New(`^(?:alpha|beta|dev|pre|preview|rc)[0-9.]*$`)
	hexWord    = lazyregexp.New(`^[0-9a-f]{7,64}$`)
	runs       = lazyregexp.New(`[0-9]+|[a-z]+`)
	dateNumber = lazyregexp.New(`^(?:19|2[0-9])[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$`)
)

// maxDigits keeps every number inside 64 bits.
const maxDigits = 18

// Parse takes a tag apart. Only a string that is no name for a release at all
// is an error; a tag that cannot be ordered says so by [Tag.Reason].
func Parse(tag string) (Tag, error) {
	if len(tag) > MaxTag || !charset().MatchString(tag) {
		return Tag{}, fmt.Errorf("version %q is not 1 to %d letters, digits, dots, hyphens, underscores, slashes and plus signs that begin with a letter or digit", tag, MaxTag)
	}
	t := Tag{text: tag}
	t.parse()
	return t, nil
}

func (t *Tag) parse() {
	rest := strings.ToLower(t.text)
	rest, t.dirty = strings.CutSuffix(rest, "-dirty")
	rest, described := t.cutDescription(rest)
	if head, build, ok := strings.Cut(rest, "+"); ok {
		t.build = build
		if cut, ok := strings.CutSuffix(head, "-dirty"); ok {
			head, t.dirty = cut, true
		}
		if !described {
			head, _ = t.cutDescription(head)
		}
		rest = head
	}
	if maybeDescribed().MatchString(rest + "-") {
		t.reason = "it may be what git describe says, with too few digits of the hash or twice over: at least 7 are needed"
		return
	}
	part := shape().FindStringSubmatch(rest)
	if part == nil {
		t.reason = "it has no number to order it by"
		return
	}
	prefix, numbers, tail := part[1], strings.Split(part[2], "."), part[3]
	if prefix == "v" {
		prefix = ""
	}
	if t.reason = hashReason(prefix, part[2], tail); t.reason != "" {
		return
	}
	for _, n := range numbers {
		v, ok := number(n)
		if !ok {
			t.reason = fmt.Sprintf("its number %s is too large", n)
			return
		}
		t.numbers = append(t.numbers, v)
	}
	series := prefix + era(prefix, numbers)
	for len(t.numbers) > 0 && t.numbers[len(t.numbers)-1] == 0 {
		t.numbers = t.numbers[:len(t.numbers)-1]
	}
	suffix, reason := t.parseTail(prefix, tail)
	if reason != "" {
		t.reason = reason
		return
	}
	t.series = series + suffix
	t.semver = t.semantic(prefix, numbers, tail)
}

// cutDescription takes what git describe adds off the end.
func (t *Tag) cutDescription(s string) (string, bool) {
	part := described().FindStringSubmatch(s)
	if part == nil {
		return s, false
	}
	n, ok := number(part[2])
	if !ok {
		return s, false
	}
	t.after, t.hash = n, part[3]
	return part[1], true
}

// parseTail reads what stands between the numbers and git's description. It
// returns what that adds to the name of the series.
func (t *Tag) parseTail(prefix, tail string) (suffix, reason string) {
	if tail == "" {
		return "", ""
	}
	if !preRelease().MatchString(tail) {
		return "", fmt.Sprintf("what %q means after its number is not known", tail)
	}
	word := strings.TrimLeft(tail, "-._")
	head, last := "", word
	if i := strings.LastIndexByte(word, '-'); i >= 0 {
		head, last = word[:i+1], word[i+1:]
	}
	switch {
	case hexWord().MatchString(last) && (prefix != "" || strings.ContainsAny(last, "abcdef")):
		if t.hash != "" {
			return "", "it names a commit and is described by git as well"
		}
		t.hash, t.variant = last, true
		return "-" + head + "hash", ""
	case prefix != "" && !preWord().MatchString(word):
		return "-" + word, "" // b6123-cuda: a variant, for nobody says semantic version to a build number
	}
	ids := runs().FindAllString(word, -1)
	for i, id := range ids {
		if id[0] > '9' {
			continue
		}
		n, ok := number(id)
		if !ok {
			return "", fmt.Sprintf("its number %s is too large", id)
		}
		ids[i] = strconv.FormatUint(n, 10)
	}
	if len(ids) == 0 {
		return "", fmt.Sprintf("what %q means after its number is not known", tail)
	}
	t.pre = strings.Join(ids, ".")
	return "", ""
}

// hashReason says why the tag may be the hash of a commit, "" if it is none.
func hashReason(prefix, numbers, tail string) string {
	whole := numbers + tail
	switch {
	case strings.HasSuffix(prefix, "-") && hexWord().MatchString(whole) && !dateNumber().MatchString(whole),
		hexWord().MatchString(prefix+whole) && !dateNumber().MatchString(whole) && !plainBuild(prefix, whole):
		return "it names a commit, and a hash has no order"
	case slices.Contains([]string{"master-", "main-", "trunk-", "head-"}, prefix):
		return "it names a branch, and what follows may be a hash"
	}
	return ""
}

// plainBuild tells b1234567, a build, from a hash: the prefix of builds and
// nothing but a number.
func plainBuild(prefix, whole string) bool {
	return len(prefix) == 1 && len(strings.Trim(whole, "0123456789")) == 0
}

// era names the scheme of the numbers. A build number has none: b2026 follows
// b2025, and v0.2.20240330 begins with a small number.
func era(prefix string, numbers []string) string {
	first := strings.TrimLeft(numbers[0], "0")
	switch {
	case dateNumber().MatchString(first):
		return "YYYYMMDD"
	case len(first) == 4 && "1970" <= first && first < "3000" && (prefix == "" || len(numbers) > 1):
		return "YYYY"
	}
	return "N"
}

func number(s string) (uint64, bool) {
	s = strings.TrimLeft(s, "0")
	if s == "" {
		return 0, true
	}
	if len(s) > maxDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// String is the tag in its own spelling.
func (t Tag) String() string { return t.text }

// Series names the pattern of the tag, "" if the tag has no place in any.
func (t Tag) Series() string { return t.series }

// Reason says why the tag has no place in any series, "" if it has one.
func (t Tag) Reason() string { return t.reason }

// Of is the tag as one of a source, such as a repository: tags of different
// sources are not comparable.
func (t Tag) Of(source string) Tag {
	t.source = source
	return t
}

// Dirty is true of what was built from a checkout with changes that no commit
// holds. It is never an update of anything.
func (t Tag) Dirty() bool { return t.dirty }

// Build is what follows the plus sign, in lower case: "rocm7".
func (t Tag) Build() string { return t.build }

// Same is true of two tags that are spelled alike.
func (t Tag) Same(u Tag) bool { return t.text == u.text && t.source == u.source }
