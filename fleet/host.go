package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// Errors a caller branches on. A missing unit is [systemd.ErrNoUnit], a missing manager [systemd.ErrNoBus].
var (
	// ErrRefused is wrapped where a policy or a setting of the unit forbids the act. Nothing was changed.
	ErrRefused = errors.New("refused")
	// ErrBusy is wrapped where another command worked on the unit for longer than Host.LockWait.
	ErrBusy = errors.New("busy")
	// ErrReturned is wrapped where a package failed its health check and the one before serves again.
	ErrReturned = errors.New("the service went back")
)

// Host is the services of one scope of this machine. Scope, Store, StateDir, UnitDir, Connect and Now are
// required; every other zero value means its default.
type Host struct {
	Scope    systemd.Scope
	Store    *store.Store
	StateDir string // the journal's folder
	UnitDir  string // where drop-in folders are written, such as ~/.config/systemd/user
	Connect  func(ctx context.Context) (*systemd.Manager, error)
	Now      func() time.Time
	UnitDirs []string     // more folders with units that may need a package, such as ~/.local/share/systemd/user
	User     string       // who acts, for the records
	Log      *slog.Logger // nil: nothing is logged

	// Authorise is asked before an act that arms or restarts a service, once the act is known to be possible and
	// while no lock is held: act is words like "restart llm.service", notes are what the owner should know first. Its
	// error refuses the act. nil allows everything, and saves the look that comes before the question.
	Authorise func(act string, notes []string) error

	// Progress is told, in words, what a restart waits for, and that another command is waited for; several times a
	// second. nil: nobody is.
	Progress func(text string)

	LockWait     time.Duration // how long to wait for another command on the same unit; 0: one minute
	LoadDeadline time.Duration // how long a started service may take until it answers; 0: five minutes

	// What only a look at the services of somebody else needs.
	Owner     string         // whose manager it is, where not User's own or the machine's
	ReadOnly  bool           // a look settles nothing that a cut off command left
	Elsewhere []*store.Store // more stores with packages that a unit may run: such as those of homes for a unit of the system's

	Root   string // "" is /: where etc, run, usr and home hold the machine's unit folders
	Proc   string // "" is /proc
	Cgroup string // "" is /sys/fs/cgroup
	Sys    string // "" is /sys, for kernel parameters
}

func (h *Host) log() *slog.Logger {
	if h.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.Log
}

// progress says what is waited for.
func (h *Host) progress(format string, args ...any) {
	if h.Progress != nil {
		h.Progress(fmt.Sprintf(format, args...))
	}
}

// ago is the time since a moment in whole seconds.
func (h *Host) ago(began time.Time) time.Duration { return h.Now().Sub(began).Truncate(time.Second) }

// authorise asks the owner, but for what this account could not do even so.
func (h *Host) authorise(unit, act string, notes ...string) error {
	if h.Authorise == nil {
		return nil
	}
	if err := h.mayWrite(unit); err != nil {
		return err
	}
	return h.Authorise(act, notes)
}

func (h *Host) journal() journal { return journal{h.StateDir} }

func (h *Host) proc() string   { return or(h.Proc, "/proc") }
func (h *Host) cgroup() string { return or(h.Cgroup, "/sys/fs/cgroup") }
func (h *Host) sys() string    { return or(h.Sys, "/sys") }

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func (h *Host) loadDeadline() time.Duration {
	if h.LoadDeadline <= 0 {
		return 5 * time.Minute
	}
	return h.LoadDeadline
}

// dropInDir is the folder of our files for a unit.
func (h *Host) dropInDir(unit string) string { return filepath.Join(h.UnitDir, unit+".d") }

// otherUnits are the kinds of unit that are no services.
var otherUnits = [...]string{".timer", ".socket", ".target", ".path", ".mount", ".automount", ".slice", ".scope", ".swap", ".device"}

// unitName completes a name as systemctl does and refuses what cannot be the name of a service: the name becomes
// part of a path.
func unitName(name string) (string, error) {
	if base := filepath.Base(name); strings.Contains(name, "/") {
		return "", fmt.Errorf("%w: %q is a path: name the service itself, such as %s", systemd.ErrNoUnit, name, strings.TrimSuffix(base, ".service"))
	}
	if kind := filepath.Ext(name); slices.Contains(otherUnits[:], kind) {
		return "", fmt.Errorf("%w: %q is a %s, and only services run a package: name the service", systemd.ErrNoUnit, name, kind[1:])
	}
	full := name
	if !strings.HasSuffix(full, ".service") {
		full += ".service"
	}
	stem := strings.TrimSuffix(full, ".service")
	bad := stem == "" || len(full) > 255
	for _, c := range stem {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(`:-_.\@`, c)
		bad = bad || !ok
	}
	if bad {
		return "", fmt.Errorf("%w: %q is not the name of a service", systemd.ErrNoUnit, name)
	}
	if prefix, ok := strings.CutSuffix(stem, "@"); ok {
		return "", fmt.Errorf("%w: %q is a template, of which nothing runs: name an instance, such as %s@NAME.service", systemd.ErrNoUnit, name, prefix)
	}
	return full, nil
}

// unit asks the manager for a unit and gives its primary name.
func (h *Host) unit(ctx context.Context, m *systemd.Manager, name string) (*systemd.Unit, error) {
	full, err := unitName(name)
	if err != nil {
		return nil, err
	}
	u, err := m.Unit(ctx, full)
	if errors.Is(err, systemd.ErrNoUnit) && h.exists(full) {
		err = fmt.Errorf("%w; what this program wrote for it is still there: 1bit pkg unswitch %s removes that", err, full)
	}
	if err != nil {
		return nil, h.noUnit(err, full)
	}
	if err := h.loadable(u); err != nil {
		return nil, err
	}
	return u, nil
}

// exists tells whether there is a file of ours for the unit, also where no manager can be asked.
func (h *Host) exists(unit string) bool {
	for _, name := range []string{dropInName, prevName} {
		if _, err := os.Lstat(filepath.Join(h.dropInDir(unit), name)); err == nil {
			return true
		}
	}
	return false
}

// traces tells whether anything of ours is in the unit's folder, also what a command left half done.
func (h *Host) traces(unit string) bool {
	_, err := os.Lstat(h.holdPath(unit))
	return err == nil || h.exists(unit) || (pair{h.dropInDir(unit)}).staged()
}

// Switched lists the units with files of ours, sorted, from the unit folder alone: what a rollback can be asked for
// where no manager answers.
func (h *Host) Switched() ([]string, error) {
	entries, err := os.ReadDir(h.UnitDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var units []string
	for _, e := range entries {
		if unit, ok := strings.CutSuffix(e.Name(), ".d"); ok && h.exists(unit) {
			units = append(units, unit)
		}
	}
	return units, err
}
