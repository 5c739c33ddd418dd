package version

import (
	"fmt"
	"regexp"
	"strings"
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

var (
	nativeTag    = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]*$`)
	nativeNumber = regexp.MustCompile(`^[vV]?([0-9]+(?:\.[0-9]+)*)(?:-([0-9A-Za-z.-]+?))??(?:-([0-9]+)-(g[0-9a-f]{7,64}))?(?:-(dirty))?(?:\+([0-9A-Za-z.-]+))?$`)
	nativeRun    = regexp.MustCompile(`[0-9]+|[A-Za-z]+`)
	nativeNoWord = regexp.MustCompile(`[^0-9A-Za-z]+`)
)

const (
	maxNativeTag   = 128
	maxNativeParts = 4
)

func native(tag string, style nativeStyle) (string, error) {
	if len(tag) > maxNativeTag || !nativeTag.MatchString(tag) {
		return "", fmt.Errorf("version %q cannot be said in a native package: it is not made of letters, digits, dots, hyphens, underscores and plus signs", tag)
	}
	part := nativeNumber.FindStringSubmatch(tag)
	if part == nil {
		return "0+" + words(tag), nil
	}
	number, pre, distance, hash, dirty, meta := part[1], part[2], part[3], part[4], part[5], part[6]
	var after []string
	if hash != "" && strings.Trim(distance, "0") != "" {
		after = append(after, strings.TrimLeft(distance, "0"), hash)
	}
	for _, s := range []string{dirty, words(meta)} {
		if s != "" {
			after = append(after, s)
		}
	}
	out := number
	// rc1, RC.1 and rc.1 are one thing.
	if runs := strings.Join(nativeRun.FindAllString(strings.ToLower(pre), -1), "."); runs != "" {
		if style.letterFirst && runs[0] <= '9' {
			runs = "a." + runs // below alpha, beta and rc
		}
		out += style.pre + runs
	}
	if len(after) > 0 {
		suffix := strings.Join(after, ".")
		if style.padded && pre == "" && suffix[0] <= '9' {
			out += strings.Repeat(".0", max(maxNativeParts-1-strings.Count(number, "."), 0))
		}
		out += "+" + suffix
	}
	return out, nil
}

// words puts one dot for everything that is neither letter nor digit.
func words(s string) string {
	return strings.Trim(nativeNoWord.ReplaceAllString(s, "."), ".")
}
