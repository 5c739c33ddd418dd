package version

import (
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// Deb is the version of a Debian package made of a release with that tag.
//
// The three native versions sort, by dpkg, rpm and pacman, as the tags do:
//
//	v2026.44              2026.44               2026.44               2026.44
//	v2026.44-rc.1, -RC1   2026.44~rc.1          2026.44~rc.1          2026.44rc.1
//	v2026.44-5-gfeedbee   2026.44+5.gfeedbee    2026.44.0.0+5.gfeedbee  (the same)
//	v2026.44+rocm7        2026.44+rocm7         2026.44+rocm7         2026.44+rocm7
//	b6123                 0+b6123               0+b6123               0+b6123
//
// A tag of a scheme without a dotted number is below every version that has
// one, so no package manager takes the one for an update of the other's
// elders by itself. No version holds a hyphen, a colon or an epoch.
func Deb(tag string) (string, error) {
	return native(tag, nativeStyle{pre: "~"})
}

// RPM is the version of an RPM package; see [Deb]. rpm reads "+5" as a further
// part, which would beat a fourth one: so all four are written out.
func RPM(tag string) (string, error) {
	return native(tag, nativeStyle{pre: "~", padded: true, letterFirst: true})
}

// Arch is the version of an Arch package; see [Deb]. pacman knows no "~" but
// takes letters right after a number for something before it.
func Arch(tag string) (string, error) {
	return native(tag, nativeStyle{padded: true, letterFirst: true})
}

// nativeStyle is where the package managers differ.
type nativeStyle struct {
	pre         string // between a number and what is before it
	padded      bool   // a number after "+" needs all parts before it
	letterFirst bool   // a pre-release must not begin with a digit
}

var notWord = lazyregexp.New(`[^0-9A-Za-z]+`)

// nativeParts are the numbers that a calendar's tag has at most.
const nativeParts = 4

func native(tag string, style nativeStyle) (string, error) {
	t, err := Parse(tag)
	if err != nil {
		return "", err
	}
	part := shape().FindStringSubmatch(strings.ToLower(tag))
	if t.series == "" || part[1] != "" && part[1] != "v" {
		return "0+" + words(tag), nil
	}
	out := part[2]
	if pre := t.pre; pre != "" {
		if style.letterFirst && pre[0] <= '9' {
			pre = "a." + pre // below alpha, beta and rc
		}
		out += style.pre + pre
	}
	var after []string
	switch {
	case t.variant:
		after = append(after, t.hash)
	case t.after > 0:
		after = append(after, strconv.FormatUint(t.after, 10), "g"+t.hash)
	}
	if t.dirty {
		after = append(after, "dirty")
	}
	if build := words(t.build); build != "" {
		after = append(after, build)
	}
	if len(after) == 0 {
		return out, nil
	}
	suffix := strings.Join(after, ".")
	if style.padded && t.pre == "" && suffix[0] <= '9' {
		out += strings.Repeat(".0", max(nativeParts-1-strings.Count(part[2], "."), 0))
	}
	return out + "+" + suffix, nil
}

// words puts one dot for everything that is neither letter nor digit.
func words(s string) string {
	return strings.Trim(notWord().ReplaceAllString(s, "."), ".")
}
