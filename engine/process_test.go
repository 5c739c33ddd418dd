package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startHelper makes the test binary a runner that starts a child with a
// grandchild, tells the child's pid and then waits to be killed.
const startHelper = "ENGINE_TEST_START"

// noTraceHelper makes the test binary a runner under a sandbox that forbids to
// trace, which starts a child that is to have a cage.
const noTraceHelper = "ENGINE_TEST_NO_TRACE"

func TestMain(m *testing.M) {
	if os.Getenv(noTraceHelper) != "" {
		os.Exit(withoutTracing())
	}
	if script := os.Getenv(startHelper); script != "" {
		p, err := StartProcess(context.Background(), ProcessOptions{Program: "/bin/sh", Args: []string{"-c", script}, Env: pathEnv})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

var pathEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// twoOfThem is a shell that leaves a grandchild in its group.
const twoOfThem = `sleep 300 & echo ready >&2; wait`

func startShell(t *testing.T, script string) (*Process, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := StartProcess(t.Context(), ProcessOptions{Program: "/bin/sh", Args: []string{"-c", script}, Env: pathEnv, LogPath: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background(), 0) })
	return p, log
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func contains(path, text string) func() bool {
	return func() bool {
		b, _ := os.ReadFile(path)
		return bytes.Contains(b, []byte(text))
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	for name, script := range map[string]string{
		"willing":                      twoOfThem,
		"unwilling":                    `trap '' TERM; ` + twoOfThem + `; sleep 300`,
		"stopped":                      twoOfThem + " & sleep 0.1; kill -STOP 0",
		"ended with a grandchild left": `sleep 300 & echo ready >&2`,
	} {
		t.Run(name, func(t *testing.T) {
			p, log := startShell(t, script)
			waitFor(t, "the child's start", contains(log, "ready"))
			if err := p.Stop(t.Context(), 100*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if left := GroupMembers("/proc", p.PID()); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			if err := p.Stop(t.Context(), time.Millisecond); err != nil {
				t.Errorf("stopped again: %v", err)
			}
		})
	}
}

func TestGroupDiesWithUs(t *testing.T) {
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), startHelper+"="+twoOfThem)
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32)
	n, _ := out.Read(line)
	group, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatalf("the runner said %q", line[:n])
	}
	waitFor(t, "child and grandchild", func() bool { return len(GroupMembers("/proc", group)) == 2 })
	runner.Process.Kill()
	runner.Wait()
	waitFor(t, "the end of the group", func() bool { return len(GroupMembers("/proc", group)) == 0 })
}

func TestExitStatus(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3":        "exit status 3",
		"kill -ABRT $$": "signal 6 (aborted)",
		"exit 139":      "signal 11 (segmentation fault)",
	} {
		p, _ := startShell(t, script)
		status, err := p.Wait(t.Context())
		if err != nil || status.String() != want {
			t.Errorf("%s: %s (%v), want %s", script, status, err, want)
		}
	}
	if (ExitStatus{Code: 137}).KilledBy() != syscall.SIGKILL {
		t.Error("exit status 137 is not seen as SIGKILL")
	}
}

func TestProcessGetsOnlyItsEnvironment(t *testing.T) {
	t.Setenv("ENGINE_TEST_LEAK", "1")
	log := filepath.Join(t.TempDir(), "log")
	p, err := StartProcess(t.Context(), ProcessOptions{Program: "/usr/bin/env", LogPath: log})
	if err != nil {
		t.Fatal(err)
	}
	p.Wait(t.Context())
	p.Stop(t.Context(), 0)
	if b, _ := os.ReadFile(log); len(b) > 0 {
		t.Errorf("a child without environment has %q", b)
	}
	if _, err := StartProcess(t.Context(), ProcessOptions{Program: "/nothing/here"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
}

func TestWaitReady(t *testing.T) {
	left := 2
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if left--; left > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	p, _ := startShell(t, "sleep 300")
	if err := (&Server{p}).WaitReady(t.Context(), &Client{BaseURL: srv.URL}); err != nil {
		t.Errorf("a server that loads first: %v", err)
	}
	port, err := FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nobody := &Client{BaseURL: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	dead, _ := startShell(t, "exit 7")
	if err := (&Server{dead}).WaitReady(t.Context(), nobody); !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("a server that ended: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := (&Server{p}).WaitReady(ctx, nobody); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that never listens: %v", err)
	}
}

func TestVersion(t *testing.T) {
	for out, want := range map[string]string{
		"ggml_init: x\nversion: 10605 (86c33b5d5)\nbuilt with cc": "10605 (86c33b5d5)",
		"version: 0.7.0 (build 11669, commit Debian)\n":           "0.7.0 (build 11669, commit Debian)",
	} {
		if got, err := parseVersion("x", []byte(out)); got != want || err != nil {
			t.Errorf("%q: %q, %v", out, got, err)
		}
	}
	if _, err := parseVersion("x", []byte("no idea")); err == nil {
		t.Error("no version line is no error")
	}
	if _, err := Version(t.Context(), "/bin/false", nil); err == nil {
		t.Error("a program that fails is no error")
	}
}

// pen is a cage of one more process, which left the group.
type pen struct{ pid, watcher int }

func (c *pen) Members() ([]int, error) {
	pids := []int{c.watcher}
	if _, alive := StartTicks("/proc", c.pid); alive {
		pids = append(pids, c.pid)
	}
	return pids, nil
}

func TestCageHoldsWhatLeavesTheGroup(t *testing.T) {
	away := exec.Command("/bin/sleep", "300")
	if err := away.Start(); err != nil {
		t.Fatal(err)
	}
	go away.Wait()
	log := filepath.Join(t.TempDir(), "log")
	watcher := 0
	p, err := StartProcess(t.Context(), ProcessOptions{
		Program: "/bin/sh", Args: []string{"-c", "/usr/bin/env; sleep 300"}, LogPath: log,
		Cage: func(pids ...int) (Cage, error) {
			if len(pids) != 2 || pids[0] == pids[1] {
				t.Errorf("put into the cage: %v, want the child and its watcher", pids)
			}
			watcher = pids[1]
			time.Sleep(50 * time.Millisecond)
			if b, _ := os.ReadFile(log); len(b) > 0 {
				t.Errorf("the child ran before it was in its cage: %q", b)
			}
			return &pen{away.Process.Pid, pids[1]}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child's start", contains(log, "PWD="))
	if list := p.Members(); len(list) < 2 || slices.Contains(list, watcher) {
		t.Errorf("members %v, the watcher %d not being one", list, watcher)
	}
	if err := p.Stop(t.Context(), 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if left := p.Members(); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	no := errors.New("no cage")
	if _, err := StartProcess(t.Context(), ProcessOptions{Program: "/bin/sleep", Args: []string{"300"}, Cage: func(...int) (Cage, error) { return nil, no }}); !errors.Is(err, no) {
		t.Errorf("a child without its cage: %v", err)
	}
}

// withoutTracing starts a child where ptrace is refused by a seccomp filter.
func withoutTracing() int {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PTRACE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Println("no new privileges:", err)
		return 1
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		fmt.Println("set the filter:", errno)
		return 1
	}
	ctx := context.Background()
	p, err := StartProcess(ctx, ProcessOptions{Program: "/bin/sh", Args: []string{"-c", "exit 7"}, Cage: func(...int) (Cage, error) {
		return nil, errors.New("a child that was not held was put into a cage")
	}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	status, err := p.Wait(ctx)
	fmt.Println(status, err, p.Uncaged(), p.Stop(ctx, 0))
	return 0
}

// Where a child may not be held it starts all the same, in its process group
// alone, and the reason is kept.
func TestNoCageWithoutTracing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), noTraceHelper+"=1")
	out, err := cmd.CombinedOutput()
	if want := "exit status 7 <nil> hold it before it runs: fork/exec /bin/sh: operation not permitted <nil>\n"; string(out) != want || err != nil {
		t.Errorf("%q (%v), want %q", out, err, want)
	}
}
