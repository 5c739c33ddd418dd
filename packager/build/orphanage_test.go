package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// A program that starts a daemon, and that a daemon, is not fit, and none of
// them outlives the trial. Children that are not the trial's stay alone.
func TestTrialSweepsDaemons(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	script := `#!/bin/sh
/usr/bin/setsid /bin/sh -c 'exec >/dev/null 2>&1; /usr/bin/setsid /bin/sh -c "echo \$\$ >> ` + pids + `; exec /bin/sleep 1000" & echo $$ >> ` + pids + `; exec /bin/sleep 1001' &
n=0; while [ "$(/usr/bin/wc -l < ` + pids + ` 2>/dev/null)" != 2 ] && [ $n -lt 500 ]; do n=$((n+1)); /bin/sleep 0.01; done
echo version 1
`
	if err := os.WriteFile(filepath.Join(dir, "p"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	mine := exec.Command("/bin/sleep", "1000")
	if err := mine.Start(); err != nil {
		t.Fatal(err)
	}
	tr := &trial{manifest: &packager.Manifest{Flavour: "hrx", ID: "1", EntryPoints: map[string]string{"p": "p", "q": "p"}}, limit: time.Minute}
	_, _, err := tr.run(context.Background(), dir)
	if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "leaves processes running: sleep") {
		t.Errorf("got %v", err)
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Fields(b)
	if len(lines) != 2 {
		t.Errorf("%q", b)
	}
	for _, line := range lines {
		pid, err := strconv.Atoi(string(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", pid, err)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := mine.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := mine.Wait(); mine.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the child that was there before: %v", err)
	}
}

// What ends with the program's group was no daemon.
func TestTrialAllowsItsOwnGroup(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p"), []byte("#!/bin/sh\n/bin/sleep 1000 &\necho version 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr := &trial{manifest: &packager.Manifest{Flavour: "hrx", ID: "1", EntryPoints: map[string]string{"p": "p"}}, limit: time.Minute}
	trials, _, err := tr.run(context.Background(), dir)
	if err != nil || len(trials) != 1 || trials[0].Version != "version 1" {
		t.Errorf("%+v, %v", trials, err)
	}
}

func TestParseStat(t *testing.T) {
	for line, want := range map[string]child{
		"12 (sleep) S 7 9 9 0":            {group: 9, name: "sleep"},
		"12 (a) Z 1 (b\x1b[2J) Z 7 9 9 0": {group: 9, name: "a) Z 1 (b[2J", ended: true},
	} {
		if got, parent, err := parseStat([]byte(line)); got != want || parent != 7 || err != nil {
			t.Errorf("%q: %+v, %d, %v", line, got, parent, err)
		}
	}
	for _, line := range []string{"", "12", ") (", "1 (x) S", "1 (x) S a b", "1 (x) S 1 b"} {
		if got, _, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (sleep) S 7 9 9 0"))
	f.Add([]byte("1 (()) Z 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, _, err := parseStat(b); err == nil && strings.ContainsAny(c.name, "\x1b\n") {
			t.Errorf("%q: %q", b, c.name)
		}
	})
}
