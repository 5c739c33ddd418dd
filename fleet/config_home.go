package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// A user's manager reads units from several folders, and the environment of a command can name any of them as its own
// (XDG_CONFIG_HOME, HOME). The owner's policy and his holds lie in one: where the manager keeps its settings. So acts
// are refused in every other one, and where another one holds files of ours for the same unit, whatever put them there.

// inUse refuses a unit folder that is not the manager's own.
func (h *Host) inUse(m *systemd.Manager) error {
	path := m.SearchPath()
	if !h.searched(path) {
		return fmt.Errorf("%w: the %s manager does not read %s", ErrRefused, h.Scope, h.UnitDir)
	}
	home, mine := configHome(path), filepath.Dir(filepath.Dir(filepath.Clean(h.UnitDir)))
	if h.Scope != systemd.ScopeUser || home == "" || home == mine || sameFolder(home, mine) {
		return nil
	}
	return fmt.Errorf("%w: the user manager keeps its settings below %s, and this command was pointed at %s: run it with XDG_CONFIG_HOME=%s",
		ErrRefused, home, mine, home)
}

// configHome is the folder below which a user's manager keeps its settings, "" where its search path does not tell.
// systemd puts the folder of its own lasting settings first.
func configHome(searchPath []string) string {
	for _, dir := range searchPath {
		if home, ok := strings.CutSuffix(filepath.Clean(dir), "/systemd/user.control"); ok {
			return home
		}
	}
	return ""
}

func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// namesakes are the files of ours for a unit in the other folders that the manager reads, the strongest first.
func (h *Host) namesakes(searchPath []string, unit string) []string {
	var found []string
	for _, dir := range searchPath {
		folder := filepath.Join(dir, unit+".d")
		if _, err := os.Lstat(folder); err != nil || sameFolder(folder, h.dropInDir(unit)) || sameFolder(dir, h.UnitDir) {
			continue
		}
		for _, name := range []string{dropInName, prevName, holdName} {
			if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
				found = append(found, filepath.Join(folder, name))
			}
		}
	}
	return found
}

// alone refuses a unit with files of ours in another folder: they would decide together with those in this one, or
// be hidden by them until a rollback shows them again.
func (h *Host) alone(searchPath []string, unit string) error {
	if found := h.namesakes(searchPath, unit); len(found) > 0 {
		return fmt.Errorf("%w: files of this program for %s lie in another folder too, which the manager also reads: %s: move them away and run: systemctl%s daemon-reload",
			ErrRefused, unit, strings.Join(found, ", "), h.userFlag())
	}
	return nil
}
