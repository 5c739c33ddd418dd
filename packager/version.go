package packager

import (
	"fmt"
	"strings"

	"github.com/1bit-systems/pkg/packager/version"
)

// ParseVersion turns the tag of a package into the semantic version it stands
// for: v2026.44 is 2026.44.0, v2026.04.1 is 2026.4.1 (a leading zero is how a
// calendar writes a week). It is "" for a tag that has an order but stands for
// none: b6123, four numbers, commits after a tag. A tag without any order, such
// as a word or a hash, is an error.
func ParseVersion(tag string) (string, error) {
	t, err := version.Parse(tag)
	if err != nil {
		return "", err
	}
	// It goes into file names.
	if len(tag) > maxTag || strings.Contains(tag, "/") {
		return "", fmt.Errorf("version %q has a slash or more than %d characters", tag, maxTag)
	}
	if t.Series() == "" {
		return "", fmt.Errorf("version %s", t.Describe())
	}
	v, _ := t.Semver()
	return v, nil
}
