package cmd

import (
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
)

func TestVersionNote(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"hrx v2026.44", "hrx v2026.45", ""},
		{"hrx v2026.44", "hrx v2026.44", ""},
		{"hrx ", "hrx ", ""},
		{"hrx v2026.44", "hrx v2026.43.1", "a downgrade: hrx-2 (v2026.43.1) is older than hrx-1 (v2026.44)"},
		{"hrx 1.0.0-rc10", "hrx 1.0.0-rc.9", "a downgrade"},
		{"hrx v2026.44", "hrx v2026.44-1", "not a package revision"},
		{"hrx b10621", "hrx v0.3.0", "not comparable"},
		{"hrx v26.8.0", "hrx v2026.44", "not comparable"},
		{"hrx v2026.44", "hrx ", "not comparable: hrx-2 has none"},
		{"hrx ", "hrx v2026.44", "not comparable: hrx-1 has none"},
		{"hrx v2026.44", "vulkan v2026.45", "of two flavours"},
		{"hrx v2026.44", "hrx v2026.044", "same rank"},
	} {
		got := versionNote(tagged(c.from, "1"), tagged(c.to, "2"))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestVersionChange(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"hrx v2026.44", "hrx v2026.45", "newer"},
		{"hrx v2026.44", "hrx v2026.43.1", "older"},
		{"hrx v2026.44", "hrx v2026.44", "same"},
		{"hrx v2026.44", "hrx v2026.044", "same rank"},
		{"hrx v26.8.0", "hrx v2026.44", "not comparable"},
		{"hrx v2026.44", "vulkan v2026.45", "not comparable"},
		{"hrx v2026.44", "hrx ", "not comparable"},
		{"hrx ", "hrx ", ""},
	} {
		if got := versionChange(tagged(c.from, "1"), tagged(c.to, "2")); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func tagged(text, id string) *packager.Manifest {
	flavour, tag, _ := strings.Cut(text, " ")
	return &packager.Manifest{Flavour: flavour, ID: id, Tag: tag}
}
