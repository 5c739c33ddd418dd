package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager"
)

func TestNewer(t *testing.T) {
	day := time.Date(2026, 10, 19, 0, 0, 0, 0, time.UTC)
	pkg := func(flavour, id, tag string, days int) *Package {
		return &Package{
			Manifest: &packager.Manifest{Flavour: flavour, ID: id, Tag: tag}, Path: "/p/" + flavour + "-" + id, Digest: id,
			Name: flavour + "-" + id, InstalledAt: day.AddDate(0, 0, days),
		}
	}
	list := []*Package{
		pkg("hrx", "w9", "v2026.9", 9), pkg("hrx", "w40", "v2026.40", 0), pkg("hrx", "w41", "v2026.41", 1), pkg("hrx", "w100", "v2027.1", 2),
		pkg("hrx", "abcdef0", "", -5), pkg("hrx", "abcdef1", "", 5), pkg("vulkan", "w50", "v2026.50", 6),
	}
	for at, want := range map[int][]string{
		0: {"hrx-w100", "hrx-w41", "hrx-w40"}, // installed last of them, and the oldest
		1: {"hrx-w100", "hrx-w41", "hrx-abcdef1"},
		3: {"hrx-abcdef1"},
		4: {"hrx-w100", "hrx-w41", "hrx-w40", "hrx-w9", "hrx-abcdef1"},
		5: {"hrx-w9"},
		6: nil,
	} {
		var got []string
		for _, p := range Newer(list, list[at]) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("newer than %s: %s", list[at].Name, diff)
		}
	}
}
