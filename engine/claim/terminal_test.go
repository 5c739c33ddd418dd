package claim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
)

// terminal is a pseudo-terminal with a program at its other end.
type terminal struct {
	master *os.File
	cmd    *exec.Cmd

	mu   sync.Mutex
	said []byte
}

// onTerminal starts a program as the leader of a session of its own, in front of a terminal of its own.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term := &terminal{master: master, cmd: cmd}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			term.mu.Lock()
			term.said = append(term.said, b[:n]...)
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

func (m *terminal) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.said)
}

func (m *terminal) await(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the terminal shows\n%s", m.text())
		}
	}()
	until(t, fmt.Sprintf("%q on the terminal", text), func() bool { return strings.Contains(m.text(), text) })
}

func (m *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := m.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// The command reads the terminal, the keys that interrupt reach it and not us, Ctrl-Z does not stop it under a lock
// that goes on, and the terminal is ours again when it has ended. That holds when it has the terminal from the start,
// and when it gets it because it asks for it.
func TestInteractiveCommand(t *testing.T) {
	const script = `
trap 'echo interrupted' INT
echo ready
while read x; do
	echo "got $x"
	[ "$x" = end ] && exit 3
done
read x; echo "got $x"; exit 4`
	for _, fromTheStart := range []bool{true, false} {
		dir := t.TempDir()
		m := onTerminal(t, claimer(t, claimOrder{Lock: filepath.Join(dir, "lock"), Label: "interactive", Script: script, Tty: true, Foreground: fromTheStart, Notes: filepath.Join(dir, "notes")}))
		m.await(t, "ready")
		m.press(t, "one\n")
		m.await(t, "got one")
		m.press(t, "\x1a") // Ctrl-Z
		m.press(t, "two\n")
		m.await(t, "got two")
		m.press(t, "\x03") // Ctrl-C
		m.await(t, "interrupted")
		m.press(t, "end\n")
		m.await(t, "got end")
		m.cmd.Wait()
		m.await(t, "terminal ours again: true <nil>")
		// A shell's read may begin anew or end when it is interrupted.
		if code := m.cmd.ProcessState.ExitCode(); code != 3 && code != 4 {
			t.Errorf("from the start %v: exit status %d", fromTheStart, code)
		}
		if !isFree(Lock{Path: filepath.Join(dir, "lock")}) {
			t.Error("the lock is held")
		}
	}
}

// A command that the keys interrupt ends, and the lock is let go when nothing of it is left.
func TestKeysThatInterrupt(t *testing.T) {
	dir := t.TempDir()
	script, begun, sleeps := broodOf(dir, ownNumber(80), "")
	script = strings.ReplaceAll(script, "TERM HUP INT", "TERM HUP") + "echo ready; sleep 60"
	m := onTerminal(t, claimer(t, claimOrder{Lock: filepath.Join(dir, "lock"), Label: "keys", Script: script, Grace: 300 * time.Millisecond, Tty: true, Foreground: true, Notes: filepath.Join(dir, "notes")}))
	until(t, "the brood", exists(begun))
	m.await(t, "ready")
	m.press(t, "\x03")
	m.cmd.Wait()
	if n := alive(sleeps); n > 0 || m.cmd.ProcessState.ExitCode() != 130 || !isFree(Lock{Path: filepath.Join(dir, "lock")}) {
		t.Errorf("%d processes are left; exit status %d", n, m.cmd.ProcessState.ExitCode())
	}
}

// A command that was ended leaves the terminal as it found it; one that ends by itself as it likes.
func TestTerminalSettings(t *testing.T) {
	for _, end := range []bool{true, false} {
		dir := t.TempDir()
		script := "stty -echo; echo set; "
		if end {
			script += "sleep 3600"
		}
		m := onTerminal(t, claimer(t, claimOrder{Lock: filepath.Join(dir, "lock"), Label: "settings", Script: script, Grace: 300 * time.Millisecond, Tty: true, Foreground: true, Notes: filepath.Join(dir, "notes")}))
		m.await(t, "set")
		if end {
			m.cmd.Process.Signal(syscall.SIGTERM)
		}
		m.cmd.Wait()
		s, err := engine.Settings(m.master)
		if err != nil || (s.Lflag&unix.ECHO != 0) != end {
			t.Errorf("ended %v: settings %+v, %v", end, s, err)
		}
	}
}
