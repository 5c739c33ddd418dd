package version

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Semver is the semantic version that the tag stands for: v2026.44 is
// 2026.44.0, v2026.04.1-RC1 is 2026.4.1-RC1. A tag that is not one of up to
// three numbers has none, nor has one that is commits after its tag or dirty:
// semantic versions would put it before the tag.
func (t Tag) Semver() (string, bool) { return t.semver, t.semver != "" }

func (t *Tag) semantic(prefix string, numbers []string, tail string) string {
	if prefix != "" || len(numbers) > 3 || t.after > 0 || t.dirty || t.variant {
		return ""
	}
	if tail != "" {
		if tail[0] != '-' {
			return ""
		}
		// In its own spelling: the folded one is a part of the tag's own text.
		i := strings.Index(strings.ToLower(t.text), tail)
		tail = t.text[i : i+len(tail)]
	}
	var core [3]uint64
	copy(core[:], t.numbers)
	s := fmt.Sprintf("%d.%d.%d%s", core[0], core[1], core[2], tail)
	if t.build != "" {
		i := strings.IndexByte(t.text, '+')
		s += t.text[i : i+1+len(t.build)]
	}
	v, err := semver.StrictNewVersion(s)
	if err != nil {
		return ""
	}
	return v.String()
}

// Revision is true of a tag that ends in a lone number, v2026.40-1. It is taken
// for something before the release, where a packager may have meant the first
// packaging of it.
func (t Tag) Revision() bool {
	return t.pre != "" && strings.Trim(t.pre, "0123456789.") == ""
}

// Describe says what the tag was taken for, in words.
func (t Tag) Describe() string {
	if t.series == "" {
		return fmt.Sprintf("%q has no place in an order: %s", t.text, t.reasonOr())
	}
	var said []string
	if t.pre != "" {
		said = append(said, fmt.Sprintf("the pre-release %s, older than the release itself", t.pre))
		if t.Revision() {
			said = append(said, "not a package revision")
		}
	}
	if t.variant {
		said = append(said, "made of that commit "+t.hash+", based on the tag but not it")
	} else if t.after > 0 {
		said = append(said, fmt.Sprintf("%d commits after the tag, at %s", t.after, t.hash))
	} else if t.hash != "" {
		said = append(said, "the tag itself, at "+t.hash)
	}
	if t.dirty {
		said = append(said, "with changes that no commit holds")
	}
	if t.build != "" {
		said = append(said, "the build "+t.build)
	}
	if len(said) == 0 {
		said = append(said, "a release")
	}
	return fmt.Sprintf("%s is of the series %s: %s", t.text, t.series, strings.Join(said, ", "))
}
