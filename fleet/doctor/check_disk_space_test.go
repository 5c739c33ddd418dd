package doctor

import (
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

func TestRoom(t *testing.T) {
	small := &store.Package{Name: "a", Path: "/data/1bit-a", Size: 3, Manifest: &packager.Manifest{Files: []packager.File{{Size: 1}, {Size: 4097}}}}
	large := &store.Package{Name: "b", Path: "/data/1bit-b", Size: 9, Manifest: &packager.Manifest{}}
	other := &store.Package{Name: "c", Path: "/opt/1bit/1bit-c", Size: 99, Manifest: &packager.Manifest{}}
	if got := largest([]*store.Package{small, large, other}, "/data"); got != large {
		t.Errorf("the largest is %+v", got)
	}
	if got := largest([]*store.Package{other}, "/data"); got != nil {
		t.Errorf("of none the largest is %+v", got)
	}
	if bytes, inodes := room(small); bytes != 1<<20+5*4096 || inodes != 5 {
		t.Errorf("it takes %d bytes and %d inodes", bytes, inodes)
	}
	var out []Finding
	for _, tt := range []struct {
		need, inodes uint64
		want         int
	}{{1, 1, 0}, {1 << 62, 1, 1}, {1, 1 << 62, 1}} {
		out = nil
		if err := roomFor(t.TempDir(), "it", tt.need, tt.inodes, found(&out)); err != nil || len(out) > tt.want || tt.inodes == 1 && len(out) != tt.want {
			t.Errorf("%d bytes, %d inodes: %+v, %v", tt.need, tt.inodes, out, err)
		}
	}
}
