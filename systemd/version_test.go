package systemd

import (
	"os/exec"
	"strings"
	"testing"

	godbus "github.com/godbus/dbus/v5"
)

func TestVersion(t *testing.T) {
	for text, want := range map[string]int{"252.39-1~deb12u2": 252, "v257": 257, "257": 257, "255.4": 255, "main": 0, "": 0, "99999999999999999999": 0} {
		m := &Manager{about: map[string]godbus.Variant{"Version": godbus.MakeVariant(text)}}
		number, got, err := m.Version(t.Context())
		if number != want || got != text || (err != nil) != (text == "") {
			t.Errorf("%q: %d, %q, %v", text, number, got, err)
		}
	}
}

func TestVersionReal(t *testing.T) {
	if !inside(t, false) {
		return
	}
	number, text, err := connectHere(t).Version(t.Context())
	out, outErr := exec.Command("systemctl", "--version").Output()
	if err != nil || outErr != nil || number < 200 || !strings.Contains(string(out), text) {
		t.Errorf("%d, %q, %v; systemctl says %s, %v", number, text, err, out, outErr)
	}
}
