package incident

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

func TestUnitOfTheWatch(t *testing.T) {
	text := UnitText(systemd.ScopeUser, []string{"/a b/1bit", "--config", "100%/$HOME/\"x\"", "incident", "watch"})
	want := `ExecStart="/a b/1bit" "--config" "100%%/$$HOME/\"x\"" "incident" "watch"`
	if !strings.Contains(text, "\n"+want+"\n") || !strings.Contains(text, "\nWantedBy=default.target\n") {
		t.Errorf("%s\nwant %s", text, want)
	}
	system := UnitText(systemd.ScopeSystem, []string{"/usr/bin/1bit"})
	if !strings.Contains(system, "WantedBy=multi-user.target") || strings.Contains(system, "--user") {
		t.Error(system)
	}

	dir := filepath.Join(t.TempDir(), "systemd", "user")
	for i, changed := range []bool{true, false} {
		path, did, err := InstallUnit(dir, text)
		if err != nil || did != changed || path != filepath.Join(dir, WatchUnit) {
			t.Errorf("%d: %s, %v, %v", i, path, did, err)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, WatchUnit)); err != nil || string(raw) != text {
		t.Errorf("%v: %s", err, raw)
	}
	if _, _, err := InstallUnit(dir, system); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another text is written over what is there: %v", err)
	}
	masked := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(masked, WatchUnit)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := InstallUnit(masked, text); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link is written over: %v", err)
	}
}
