package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpellings has the folders in the order in which systemd 252 looks into them.
func TestSpellings(t *testing.T) {
	for name, want := range map[string]string{
		"a.service":           "a",
		"-a.service":          "-a",
		"a-b-c.service":       "a-b-c a-b- a-",
		"a--b.service":        "a--b a-- a-",
		"a-.service":          "a-",
		"a@i.service":         "a@i a@",
		"a-b@.service":        "a-b@ a-",
		"a-b@i.service":       "a-b@i a-b@ a- a-@i a-@",
		"x-m-a-b@c-d.service": "x-m-a-b@c-d x-m-a-b@ x-m-a- x-m- x- x-m-a-@c-d x-m-a-@ x-m-@c-d x-m-@ x-@c-d x-@",
	} {
		got := strings.ReplaceAll(strings.Join(spellings(name), " "), ".service", "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
