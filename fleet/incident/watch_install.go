package incident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/systemd"
)

// WatchUnit is the name of the unit that runs the watch.
const WatchUnit = "1bit-incident-watch.service"

// UnitText is the file of the unit that runs the watch: a program with its arguments.
func UnitText(scope systemd.Scope, args []string) string {
	var words []string
	for i, arg := range args {
		if i > 0 { // a dollar sign of the program's own path is none of a variable
			arg = strings.ReplaceAll(arg, "$", "$$")
		}
		words = append(words, systemd.QuoteWord(arg))
	}
	flag, target := "--user ", "default.target"
	if scope == systemd.ScopeSystem {
		flag, target = "", "multi-user.target"
	}
	return fmt.Sprintf(`# Made by "1bit incident watch --install". It is yours: edit it as you like.
# It writes a report when a service that runs a package ends badly; it starts, stops and changes nothing.
# "1bit incident list" shows the reports, "journalctl %[1]s-u %[2]s" what it did.

[Unit]
Description=Incident reports of the services of the 1bit inference engine
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=%[3]s
# It goes on where it was: what happened meanwhile is reported late, and not lost.
Restart=on-failure
RestartSec=30s
# It is less important than what it watches.
Nice=10
OOMScoreAdjust=500

[Install]
WantedBy=%[4]s
`, flag, WatchUnit, strings.Join(words, " "), target)
}

// InstallUnit writes that file into a folder of units, and enables and starts nothing. The error wraps [fs.ErrExist]
// where something else of the name is there; changed is false where the same text is.
func InstallUnit(dir, text string) (path string, changed bool, err error) {
	path = filepath.Join(dir, WatchUnit)
	there, err := os.ReadFile(path)
	switch {
	case err == nil && string(there) == text:
		return path, false, nil
	case err == nil:
		return path, false, fmt.Errorf("write %s: %w with another text: remove it first, or keep it", path, fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return path, false, fmt.Errorf("look at %s: %w", path, err)
	}
	if _, err := os.Lstat(path); err == nil { // a link that leads nowhere
		return path, false, fmt.Errorf("write %s: %w as a link: remove it first", path, fs.ErrExist)
	}
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return path, false, err
	}
	return path, true, atomicfile.Write(path, []byte(text), 0o644)
}
