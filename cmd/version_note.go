package cmd

import (
	"context"
	"fmt"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/version"
)

// versionNotes is what a switch to a package says of the one before: that it was newer, or that nobody can tell. A
// downgrade is allowed, but never silent.
func (a *app) versionNotes(ctx context.Context, to *packager.Manifest) func(from string) []string {
	return func(name string) []string {
		from, err := a.store().Find(ctx, name)
		switch {
		case err == nil:
			if note := versionNote(from.Manifest, to); note != "" {
				return []string{note}
			}
		case to.Tag != "":
			return []string{fmt.Sprintf("whether %s (%s) is newer than %s cannot be told: that one is not installed", to.Name(), to.Tag, name)}
		}
		return nil
	}
}

// versionNote says what people should know of the versions before one package replaces the other, "" if it is an
// update or if neither has a version. The tags of two flavours are those of two sources.
func versionNote(from, to *packager.Manifest) string {
	if from.Tag == "" && to.Tag == "" {
		return ""
	}
	for _, m := range []*packager.Manifest{from, to} {
		if m.Tag == "" {
			return fmt.Sprintf("versions not comparable: %s has none", m.Name())
		}
	}
	a, aErr := version.Parse(from.Tag)
	b, bErr := version.Parse(to.Tag)
	c, err := version.Compare(b.Of(to.Flavour), a.Of(from.Flavour))
	switch {
	case aErr != nil || bErr != nil || err != nil:
		if from.Flavour != to.Flavour {
			return fmt.Sprintf("versions not comparable: %s (%s) and %s (%s) are of two flavours", from.Name(), from.Tag, to.Name(), to.Tag)
		}
		return fmt.Sprintf("versions not comparable: %s (%s) may be older or newer than %s (%s)", to.Name(), to.Tag, from.Name(), from.Tag)
	case c < 0:
		return fmt.Sprintf("a downgrade: %s (%s) is older than %s (%s)%s", to.Name(), to.Tag, from.Name(), from.Tag, preNote(a, b))
	case c == 0 && !a.Same(b):
		return fmt.Sprintf("neither is newer: %s (%s) and %s (%s) have the same rank", from.Name(), from.Tag, to.Name(), to.Tag)
	}
	return ""
}

// versionChange says in a word what the version of to is to that of from, "" if neither has one. The versions of
// two flavours have no order.
func versionChange(from, to *packager.Manifest) string {
	switch {
	case from.Tag == "" && to.Tag == "":
		return ""
	case from.Flavour != to.Flavour && from.Tag != to.Tag:
		return version.NotComparable
	}
	return version.Describe(from.Tag, to.Tag)
}

// preNote says what was read into a lone number after a hyphen, which others take for a packager's revision.
func preNote(tags ...version.Tag) string {
	for _, t := range tags {
		if t.Revision() {
			return fmt.Sprintf("; %s", t.Describe())
		}
	}
	return ""
}
