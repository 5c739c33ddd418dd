package version

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		tag, series, semver, says string
		dirty                     bool
		build                     string
	}{
		{tag: "v2026.40", series: "YYYY", semver: "2026.40.0", says: "a release"},
		{tag: "v2026.40.1", series: "YYYY", semver: "2026.40.1", says: "a release"},
		{tag: "v2026.04.1", series: "YYYY", semver: "2026.4.1"},
		{tag: "v2026.0123.0", series: "YYYY", semver: "2026.123.0"},
		{tag: "v2026.04.22.3", series: "YYYY"},
		{tag: "v2026.40-1", series: "YYYY", semver: "2026.40.0-1", says: "the pre-release 1, older than the release itself, not a package revision"},
		{tag: "v2026.40-RC1", series: "YYYY", semver: "2026.40.0-RC1", says: "the pre-release rc.1"},
		{tag: "v2026.40-01", series: "YYYY"},
		{tag: "v2026.40rc1", series: "YYYY"},
		{tag: "v2026.40-5-gfeedbee", series: "YYYY", says: "5 commits after the tag, at feedbee"},
		{tag: "v2026.40-0-gabc1234", series: "YYYY", semver: "2026.40.0", says: "the tag itself, at abc1234"},
		{tag: "v2026.40-rc.1-0-gabc1234", series: "YYYY", semver: "2026.40.0-rc.1"},
		{tag: "v2026.40-12-gdeadbee-dirty", series: "YYYY", dirty: true, says: "with changes that no commit holds"},
		{tag: "v2026.40-dirty+Rocm7", series: "YYYY", dirty: true, build: "rocm7"},
		{tag: "v2026.40-3-gamma", series: "YYYY", semver: "2026.40.0-3-gamma", says: "the pre-release 3.gamma"},
		{tag: "v2026.40-3-gabba", says: "too few digits"},
		{tag: "v2026.40+Rocm7", series: "YYYY", semver: "2026.40.0+Rocm7", build: "rocm7", says: "the build rocm7"},
		{tag: "v2026.40+Rocm7-0-gabc1234", series: "YYYY", semver: "2026.40.0+Rocm7", build: "rocm7"},
		{tag: "v2026.40-0abc123", series: "YYYY-hash", says: "based on the tag but not it"},
		{tag: "v26.8.0", series: "N", semver: "26.8.0"},
		{tag: "V5", series: "N", semver: "5.0.0"},
		{tag: "v2026", series: "YYYY", semver: "2026.0.0"},
		{tag: "20260513", series: "YYYYMMDD", semver: "20260513.0.0"},
		{tag: "b6123", series: "bN"},
		{tag: "b2026", series: "bN"},
		{tag: "b6123-cuda", series: "bN-cuda"},
		{tag: "b10472-mix-0a1b2c3", series: "bN-mix-hash", says: "made of that commit 0a1b2c3"},
		{tag: "b1-0abc123", series: "bN-hash"},
		{tag: "release_20260513.0", series: "release_YYYYMMDD"},
		{tag: "release/2026.40", series: "release/YYYY"},
		{tag: "gguf-v0.9", series: "gguf-vN"},
		{tag: "master-0f1e2d3", says: "no place in an order: it names a commit"},
		{tag: "main-12", says: "names a branch"},
		{tag: "0f1e2d3", says: "it names a commit"},
		{tag: "latest", says: "no number"},
		{tag: "1.0.0p1", says: `what "p1" means`},
	} {
		tag := parse(t, c.tag)
		semver, ok := tag.Semver()
		if tag.Series() != c.series || semver != c.semver || ok != (c.semver != "") || tag.Dirty() != c.dirty || tag.Build() != c.build {
			t.Errorf("%s: series %q, semver %q, dirty %v, build %q", c.tag, tag.Series(), semver, tag.Dirty(), tag.Build())
		}
		if says := tag.Describe(); !strings.Contains(says, c.says) {
			t.Errorf("%s: says %q, want %q in it", c.tag, says, c.says)
		}
	}
	for _, tag := range []string{"", "-1", "v2026.44 rc", "é", "v1~rc1", "a:b", strings.Repeat("1", MaxTag+1)} {
		if got, err := Parse(tag); err == nil {
			t.Errorf("%q is read as %q", tag, got)
		}
	}
}
