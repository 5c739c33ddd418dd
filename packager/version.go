package packager

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

var versionTag = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+][0-9A-Za-z.+-]+)?$`)

// ParseVersion turns a tag into the semantic version it stands for: v2026.44
// is 2026.44.0, v2026.04.1 is 2026.4.1 (a leading zero is how a calendar
// writes a week). Four numbers and foreign schemes are errors.
func ParseVersion(tag string) (string, error) {
	part := versionTag.FindStringSubmatch(tag)
	if part == nil || len(tag) > maxTag {
		return "", fmt.Errorf("version %q is not of the form v2026.44 or v2026.44.1", tag)
	}
	core := make([]string, 3)
	for i := range core {
		core[i] = strings.TrimLeft(part[i+1], "0")
		if core[i] == "" {
			core[i] = "0"
		}
	}
	v, err := semver.StrictNewVersion(strings.Join(core, ".") + part[4])
	if err != nil {
		return "", fmt.Errorf("version %q: %w", tag, err)
	}
	return v.String(), nil
}
