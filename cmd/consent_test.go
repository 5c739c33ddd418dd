package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/fleet"
)

// terminal is a terminal on which somebody has typed a line.
func terminal(t *testing.T, line string) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	number, nerr := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, nerr); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	if _, err := master.WriteString(line); err != nil {
		t.Fatal(err)
	}
	return slave
}

func TestQuestion(t *testing.T) {
	notes := []string{"shadows hrx.conf:2", "a downgrade\x1b[2J"}
	for line, want := range map[string]error{"y\n": nil, "YES\n": nil, "\n": fleet.ErrRefused, "n\n": fleet.ErrRefused, "\x04": fleet.ErrRefused} {
		var stderr bytes.Buffer
		a := &app{stdin: terminal(t, line), stderr: &stderr, config: config{Restart: restartConfirm}}
		a.flags.output, a.flags.yes = "text", true
		err := a.authorise("switch x.service to hrx-1", notes)
		if want == nil && err != nil || !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", line, err, want)
		}
		said := stderr.String()
		if !strings.HasSuffix(said, "Switch x.service to hrx-1? [y/N] ") || !strings.HasPrefix(said, "note: shadows hrx.conf:2\nnote: a downgrade") ||
			strings.Contains(said, "\x1b") {
			t.Errorf("%q: the owner reads %q", line, said)
		}
		stderr.Reset()
		a.note(&stderr, []string{notes[0], "new"})
		if want := "note: new\n"; stderr.String() != want {
			t.Errorf("afterwards the owner reads %q, want %q", stderr.String(), want)
		}
	}
	// Where nobody can be asked nothing is printed, and the policy's file is in the error.
	for policy, output := range map[string]string{restartConfirm: "json", restartGrant: "text"} {
		var stderr bytes.Buffer
		a := &app{stdin: terminal(t, "y\n"), stderr: &stderr, config: config{Restart: policy, policyFile: "/the/policy"}}
		a.flags.output = output
		if err := a.authorise("restart x.service", notes); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "/the/policy") || stderr.Len() > 0 {
			t.Errorf("%s, %s: %v, %q", policy, output, err, stderr.String())
		}
	}
	if a := (&app{config: config{Restart: restartFree}}); a.owner() != nil {
		t.Error("somebody is asked under restart: free")
	}
}
