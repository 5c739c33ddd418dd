package realengine

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds the waits of tests: far above what anything takes.
const patience = 60 * time.Second

// served is a running front end.
type served struct {
	base string // its address
	cmd  *exec.Cmd
	log  *lockedBuffer
	wait func() error // for its end
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start starts `1bit serve ARGS…` and sees to its end.
func start(t *testing.T, frontEnd string, env []string, args ...string) *served {
	t.Helper()
	s := &served{cmd: exec.Command(frontEnd, append([]string{"serve"}, args...)...), log: &lockedBuffer{}}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.wait = sync.OnceValue(s.cmd.Wait)
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.wait()
		if t.Failed() {
			t.Logf("log of the server:\n%s", s.log)
		}
	})
	return s
}

// serve starts a front end with two slots and waits until it is healthy.
func serve(t *testing.T, frontEnd string, env []string, args ...string) *served {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, frontEnd, env, append(args, "--device", "hrx", "--ctx-size", "4096", "--parallel", "2",
		"--host", "127.0.0.1", "--port", strconv.Itoa(port))...)
	s.base = "http://127.0.0.1:" + strconv.Itoa(port)
	s.awaitHealth(t)
	return s
}

func (s *served) awaitHealth(t *testing.T) {
	t.Helper()
	await(t, "a healthy server", func() bool {
		status, _, err := ask(t.Context(), http.MethodGet, s.base+"/health", "")
		return err == nil && status == http.StatusOK
	})
}

// await waits until what is so.
func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !isSo() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// children returns the child processes of pid.
func children(t *testing.T, pid int) []int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, child)
	}
	return pids
}

// script writes a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	if err := writeFile(path, "#!/bin/sh\n"+text+"\n", 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
