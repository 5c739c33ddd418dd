package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

func TestOtherUnits(t *testing.T) {
	for name, want := range map[string]string{
		"canon.timer": "is a timer", "canon.socket": "is a socket", "/etc/systemd/system/canon.service": "such as canon", "./canon": "such as canon",
	} {
		if _, err := unitName(name); !errors.Is(err, systemd.ErrNoUnit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if full, err := unitName("canon.1"); err != nil || full != "canon.1.service" {
		t.Errorf("canon.1 is %s, %v", full, err)
	}
}

func TestServiceOf(t *testing.T) {
	proc := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(proc, "7"), 0o755), os.WriteFile(filepath.Join(proc, "7", "cgroup"),
		[]byte("0::/user.slice/user-1000.slice/user@1000.service/app.slice/canon.service/sub\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[string]string{"user@1000.service": "canon.service of user 1000", "llm.service": "llm.service"} {
		if got := serviceOf(proc, 7, unit); got != want {
			t.Errorf("%s: %s, want %s", unit, got, want)
		}
	}
	if got := serviceOf(proc, 8, "user@1000.service"); got != "user@1000.service" {
		t.Errorf("a process that is gone: %s", got)
	}
}
