package systemd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestNoWait(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	text := strings.Repeat("Environment=A=1\n", 10_000)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(NoWait(f)); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// A pipe that is open for writing too never ends.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.WriteString("so far"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(NoWait(p)); err != nil || string(got) != "so far" {
		t.Errorf("%q, %v", got, err)
	}
}

// Root may read the kernel's log, which is a regular file without an end.
func TestReadFileOfTheKernelLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.service")
	if err := os.Symlink("/proc/kmsg", name); err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("this account cannot open the kernel's log: %v", err)
	} else {
		f.Close()
	}
	// It returns, that is all; what it has read of the log is of no matter.
	_, _ = readFile(name)
}
