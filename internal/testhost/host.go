package testhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// bootTime bounds the boot. It takes a second or two on two cores that do nothing else.
const bootTime = 2 * time.Minute

// Options say how to start a host. The zero value is good for tests.
type Options struct {
	Dir  string       // folder to keep it in, on a disk file system; empty: the first good one of /var/tmp, …
	User string       // name of the lingering user; empty: ai
	Log  *slog.Logger // nil discards
}

// Host is a running host.
type Host struct {
	User string // name of the lingering user
	UID  int    // of that user and of its group; no other host of this machine has it
	Home string // of that user, as seen inside
	Disk string // the file system of the home and of the overlay, and its folder on the machine

	report
	keeper *exec.Cmd
	said   strings.Builder // by the keeper, on stderr
	hold   io.Closer       // ends the keeper
	stop   sync.Once
	ended  error
}

// Start boots a host and returns when its system and its user manager are up. The error says what was missing or,
// if the boot went wrong, what the host's log said last. Stop ends the host; so does the end of this process.
func Start(ctx context.Context, options Options) (*Host, error) {
	if err := Unable(); err != nil {
		return nil, err
	}
	log := options.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	began := time.Now()
	h, err := startKeeper(options)
	if err != nil {
		return nil, fmt.Errorf("start test host: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	if err := h.awaitBoot(ctx); err != nil {
		text, _ := os.ReadFile(filepath.Join(h.Dir, "log"))
		asking, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		failed, _ := h.Run(asking, "root", "systemctl", "--failed", "--plain", "--no-legend")
		done()
		return nil, errors.Join(fmt.Errorf("start test host: %w; its log ends: %q; failed units: %q",
			err, tail(text, 600), strings.TrimSpace(failed)), h.Stop())
	}
	log.Info("test host started", "id", h.ID, "disk", h.Disk, "took", time.Since(began))
	return h, nil
}

func tail(text []byte, length int) string {
	if len(text) > length {
		text = text[len(text)-length:]
	}
	return strings.TrimSpace(string(text))
}

func startKeeper(options Options) (*Host, error) {
	candidates := []string{"/var/tmp", os.TempDir(), "/var/lib", "/root"}
	if options.Dir != "" {
		candidates = []string{options.Dir}
	}
	base, err := findBase(candidates)
	if err != nil {
		return nil, err
	}
	cgroups, err := findCgroups()
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	others, err := otherMounts(string(mounts))
	if err != nil {
		return nil, err
	}
	h := &Host{User: options.User, Disk: base.fs + " in " + base.dir}
	if h.User == "" {
		h.User = "ai"
	}
	h.Home = "/home/" + h.User
	// Kernel limits by user id are shared with every host of the machine, so each takes an id of its own.
	h.UID = 20000 + rand.IntN(40000)
	keeper, err := helper(keeperName, plan{
		Base: base.dir, Image: base.image, Cgroups: cgroups, User: h.User, UID: h.UID, Others: others,
	})
	if err != nil {
		return nil, err
	}
	hold, err := keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, err := keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	keeper.Env = []string{"PATH=" + systemPath}
	keeper.Dir, keeper.Stderr = "/", &h.said
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keeper.Start(); err != nil {
		return nil, fmt.Errorf("start the host's keeper: %w", err)
	}
	report, err := readReport(said)
	if err != nil {
		hold.Close()
		return nil, errors.Join(err, keeper.Wait())
	}
	h.keeper, h.hold, h.report = keeper, hold, *report
	return h, nil
}

// awaitBoot waits until the system and the user's manager have started what they start.
func (h *Host) awaitBoot(ctx context.Context) error {
	waits := []struct {
		user  string
		query []string
	}{
		{"root", []string{"systemctl", "is-system-running", "--wait"}},
		{h.User, []string{"systemctl", "--user", "is-system-running", "--wait"}},
	}
	for _, wait := range waits {
		for {
			out, err := h.Run(ctx, wait.user, wait.query[0], wait.query[1:]...)
			state := strings.TrimSpace(out)
			if state == "running" || state == "degraded" {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("wait for its boot (last state %q): %w", state, errors.Join(ctx.Err(), err))
			}
			if !alive(h.PID, h.Started) {
				return errors.New("wait for its boot: its PID 1 has died")
			}
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Millisecond):
			}
		}
	}
	for {
		_, err := os.Stat(h.Outside(fmt.Sprintf("/run/user/%d/bus", h.UID)))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the user's bus: %w", err)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// Stop ends the host and removes all that it left. Only its first call does so; the others return the same.
func (h *Host) Stop() error {
	h.stop.Do(func() {
		h.hold.Close()
		if err := h.keeper.Wait(); err != nil {
			h.ended = fmt.Errorf("stop test host %s: %w: %s", h.ID, err, strings.TrimSpace(h.said.String()))
		}
	})
	return h.ended
}

// Outside returns the machine's path of a path inside, for as long as the host runs. Absolute symbolic links on the
// way lead to the machine's files, not to the host's.
func (h *Host) Outside(path string) string {
	return filepath.Join("/proc", strconv.Itoa(h.PID), "root", path)
}
