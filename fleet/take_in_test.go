package fleet

import (
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager/store"
)

func TestTakeIn(t *testing.T) {
	own, machine := t.TempDir(), t.TempDir()
	h := &Host{Store: store.Open(own, t.TempDir())}
	h.Store.Also = []*store.Store{store.Open(machine, t.TempDir())}
	for folder, want := range map[string]string{
		own + "/1bit-hrx-a":     "take it in with: 1bit pkg import ",
		machine + "/1bit-hrx-a": "root takes it in with: 1bit pkg import --scope system ",
		"/else/1bit-hrx-a":      "whoever owns it takes it in with: 1bit pkg import ",
	} {
		if got := h.takeIn(folder); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, folder) {
			t.Errorf("%s: %s", folder, got)
		}
	}
}
