package systemd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startedMark begins the name of a copy of this test program that is no test: started by a unit,
// it notes the command line and the environment that it got and ends. The rest of the name is
// the folder for that, with commas for the slashes.
const startedMark = "started"

func TestMain(m *testing.M) {
	if program, err := os.Executable(); err == nil {
		if dir, ok := strings.CutPrefix(filepath.Base(program), startedMark); ok {
			if err := note(strings.ReplaceAll(dir, ",", "/")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// started is one process of a unit: the kernel's bytes, each string with a NUL at its end.
type started struct{ Argv, Environment []byte }

// note adds this process to the file that has the name of its unit.
func note(dir string) error {
	var s started
	var err, environErr error
	s.Argv, err = os.ReadFile("/proc/self/cmdline")
	s.Environment, environErr = os.ReadFile("/proc/self/environ")
	group, groupErr := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err, environErr, groupErr); err != nil {
		return err
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, filepath.Base(strings.TrimSpace(string(group)))), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// bringStarted puts the program that notes into a folder, where its notes will be too.
func bringStarted(t *testing.T, dir string) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, startedMark+strings.ReplaceAll(dir, "/", ","))
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// run is what one process of a unit got.
type run struct {
	argv        []string
	environment map[string]string
}

// runs reads what the processes of a unit noted, in the order in which they ran.
func runs(t *testing.T, dir, unit string) []run {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, unit))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	var all []run
	for line := range bytes.Lines(data) {
		var s started
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		one := run{environment: map[string]string{}, argv: strings.Split(strings.TrimSuffix(string(s.Argv), "\x00"), "\x00")}
		for pair := range strings.SplitSeq(string(s.Environment), "\x00") {
			if key, value, ok := strings.Cut(pair, "="); ok {
				one.environment[key] = value
			}
		}
		all = append(all, one)
	}
	return all
}

// readEnviron reads a copy of /proc/PID/environ.
func readEnviron(t *testing.T, path string) (map[string]string, bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, false
	} else if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	for pair := range strings.SplitSeq(string(data), "\x00") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			environment[key] = value
		}
	}
	return environment, true
}
