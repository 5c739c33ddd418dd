package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

func TestReportError(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code int
		said string // all of it
	}{
		"interrupted":             {fmt.Errorf("restart x: %w", context.Canceled), exitFailed, "1bit: interrupted: restart x\n"},
		"interrupted, as it says": {fmt.Errorf("restart x: interrupted: %w", context.Canceled), exitFailed, "1bit: restart x: interrupted\n"},
		"another account":         {fmt.Errorf("mkdir /x: %w", fs.ErrPermission), exitFailed, "1bit: mkdir /x: permission denied\nhint: act as the account that owns it: sudo for what belongs to the system, sudo -iu NAME for another user's\n"},
		"with its own remedy":     {fmt.Errorf("write: %w; act as the account that owns it", fs.ErrPermission), exitFailed, "1bit: write: permission denied; act as the account that owns it\n"},
		"a place":                 {fmt.Errorf("import x: %w", store.ErrPlace), exitUsage, "1bit: import x: no folder to import\n"},
		"changed":                 {fmt.Errorf("import x: %w", store.ErrChanged), exitIntegrity, "1bit: import x: not as it was taken in\n"},
		"a proposal":              {fmt.Errorf("%w: %w", fleet.ErrProposal, systemd.ErrNoUnit), exitIntegrity, "1bit: it is no proposal of this program: no such unit\n"},
		"told already":            {errors.Join(statusError(exitIntegrity)), exitIntegrity, ""},
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		a.flags.output = "text"
		a.reportError(tt.err)
		if got := exitCode(tt.err); got != tt.code {
			t.Errorf("%s: status %d, want %d", name, got, tt.code)
		}
		if got := stderr.String(); got != tt.said {
			t.Errorf("%s: %q, want %q", name, got, tt.said)
		}
		stderr.Reset()
		a.flags.output = "json"
		a.reportError(tt.err)
		if tt.said != "" && !strings.Contains(stderr.String(), fmt.Sprintf(`"exit_code":%d`, tt.code)) {
			t.Errorf("%s: %s", name, stderr.String())
		}
	}
}
