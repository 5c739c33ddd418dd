package fleet

import (
	"errors"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

func TestLoadedStart(t *testing.T) {
	s := settingsOf(t, "zz", "[Service]\nExecStart=\nExecStart=-/usr/bin/env ${ONEBIT_LLAMA_SERVER} 'a b'\nExecStart=true\n")
	d := &DropIn{Start: []string{"-/usr/bin/env ${ONEBIT_LLAMA_SERVER} 'a b'", "true"}}
	env := systemd.Command{Path: "/usr/bin/env", Argv: []string{"/usr/bin/env", "${ONEBIT_LLAMA_SERVER}", "a b"}}
	for name, tt := range map[string]struct {
		loaded []systemd.Command
		d      *DropIn
		ok     bool
	}{
		"as written":     {[]systemd.Command{env, {Path: "/usr/bin/true", Argv: []string{"true"}}}, d, true},
		"one is missing": {[]systemd.Command{env}, d, false},
		"other words":    {[]systemd.Command{{Path: "/usr/bin/env", Argv: []string{"/usr/bin/env", "${ONEBIT_LLAMA_SERVER}", "a"}}, {Path: "/bin/true", Argv: []string{"true"}}}, d, false},
		"other program":  {[]systemd.Command{env, {Path: "/opt/true", Argv: []string{"true"}}}, d, false},
		"none of ours":   {nil, &DropIn{}, true},
	} {
		if err := loadedStart(&systemd.Unit{ExecStart: tt.loaded}, s, tt.d); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
