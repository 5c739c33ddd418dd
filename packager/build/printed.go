package build

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

var (
	// Upstream's and our own builds print "version: 10605 (86c33b5d5)",
	// Debian's "version: 0.7.0 (build 11669, commit Debian)".
	inParentheses = regexp.MustCompile(`\(([0-9a-f]{7,64})(?:-dirty)?\)`)
	afterCommit   = regexp.MustCompile(`(?i:\bcommit)[:= ]+([0-9a-f]{7,64})\b`)
	allDigits     = regexp.MustCompile(`^[0-9]+$`)
	builtWith     = regexp.MustCompile(`(?i)\bbuilt with\b.*`)
)

// printedCommits finds the commits in what a program prints as its version.
// In parentheses a number of digits alone is a build's, not a commit; what
// follows "built with" is the compiler's.
func printedCommits(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		line = builtWith.ReplaceAllString(line, "")
		for _, m := range inParentheses.FindAllStringSubmatch(line, -1) {
			if !allDigits.MatchString(m[1]) {
				found = append(found, m[1])
			}
		}
		for _, m := range afterCommit.FindAllStringSubmatch(line, -1) {
			found = append(found, m[1])
		}
	}
	return found
}

// comparePins is nil if every commit that the entry points print, each as its
// --version said it, is that of one of the package's components. Its error wraps
// [ErrUnfit]: the tree was built from something else.
func comparePins(m *packager.Manifest, printed map[string]string) error {
	for _, entry := range slices.Sorted(maps.Keys(printed)) {
		for _, commit := range printedCommits(printed[entry]) {
			if slices.ContainsFunc(m.Components, func(c packager.Component) bool {
				return strings.HasPrefix(c.Commit, commit) || strings.HasPrefix(commit, c.Commit)
			}) {
				continue
			}
			var pins []string
			for _, c := range m.Components {
				pins = append(pins, c.Name+" "+c.Commit)
			}
			return fmt.Errorf("%s says that it is of commit %s, and the pins are %s: build the tree again from these, or correct them: %w",
				entry, commit, strings.Join(pins, ", "), ErrUnfit)
		}
	}
	return nil
}
