package build

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
)

var (
	allDigits = lazyregexp.New(`^[0-9]+$`)
	builtWith = lazyregexp.New(`(?i)\bbuilt with\b.*`)
)

// commitForms are how programs say a commit. Where a number stands in the same
// form, digits alone are none.
var commitForms = []struct {
	form    func() *regexp.Regexp
	numbers bool // another number may stand there
}{
	// Upstream's and our own builds print "version: 10605 (86c33b5d5)",
	// Debian's "version: 0.7.0 (build 11669, commit Debian)".
	{lazyregexp.New(`\(([0-9a-f]{7,64})(?:-dirty)?(?:, (?:clean|dirty))?\)`), true},
	{lazyregexp.New(`(?i:\bcommit)[:= ]+([0-9a-f]{7,64})\b`), false},
	{lazyregexp.New(`(?i:\b(?:git|rev|revision))[:= ]+([0-9a-f]{7,64})\b`), true},
	// git describe, v2026.44-5-g0123abc, and build metadata, 2026.44+0123abc.
	{lazyregexp.New(`[0-9A-Za-z]-[0-9]+-g([0-9a-f]{7,64})\b`), false},
	{lazyregexp.New(`[0-9A-Za-z]\+([0-9a-f]{7,64})\b`), true},
}

// printedCommits finds the commits in what a program prints as its version.
// What follows "built with" is the compiler's.
func printedCommits(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		line = builtWith().ReplaceAllString(line, "")
		for _, c := range commitForms {
			for _, m := range c.form().FindAllStringSubmatch(line, -1) {
				if !c.numbers || !allDigits().MatchString(m[1]) {
					found = append(found, m[1])
				}
			}
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
