package testhost_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// ownerVariable, set in the environment, makes this test binary start a host in the folder it names, say where it is,
// and wait for its stdin to end.
const ownerVariable = "TESTHOST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVariable); dir != "" {
		os.Exit(own(dir))
	}
	os.Exit(m.Run())
}

func own(dir string) int {
	h, err := testhost.Start(context.Background(), testhost.Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	home, err := h.Run(context.Background(), h.User, "stat", "-f", "-c", "%T", ".")
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	// The keeper is this process's only child.
	children, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	keeper := strings.Fields(string(children) + " 0")[0]
	fmt.Printf("host %s|%s|%d|%s|%s|%s\n", h.Dir, h.Cgroup, h.PID, keeper, h.Disk, strings.TrimSpace(home))
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := h.Stop(); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// inMounts is a command that runs this test binary in a mount namespace of its own, after a shell script.
func inMounts(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script = "mount --make-rprivate /; " + script + "\n" + `[ $? -eq 0 ] && exec "$0" "$@"`
	cmd := exec.Command("sh", append([]string{"-c", script, binary}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	return cmd
}

// owned is a host whose owner is another process.
type owned struct {
	dir, cgroup, disk, home string
	pid, keeper             int
	owner                   *exec.Cmd
	hold                    io.Closer
}

// startOwner starts another process that owns a host in dir, in a mount namespace of its own in which the mounts of a
// shell script were made.
func startOwner(t *testing.T, dir, mounts string) *owned {
	t.Helper()
	o := &owned{owner: inMounts(t, mounts)}
	o.owner.Env = append(os.Environ(), ownerVariable+"="+dir)
	o.owner.Stderr = os.Stderr
	hold, err := o.owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.hold = hold
	out, err := o.owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hold.Close()
		_ = o.owner.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("hear from the owner: %v", err)
	}
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "host "), "|")
	if len(parts) != 6 {
		t.Fatalf("the owner says %q", line)
	}
	o.dir, o.cgroup, o.disk, o.home = parts[0], parts[1], parts[4], parts[5]
	if _, err := fmt.Sscan(parts[2]+" "+parts[3], &o.pid, &o.keeper); err != nil {
		t.Fatal(err)
	}
	return o
}

// left lists what is left of the host.
func (o *owned) left() []string {
	var left []string
	for _, path := range []string{o.dir, o.cgroup} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			left = append(left, path)
		}
	}
	if isAlive(o.pid) {
		left = append(left, "its PID 1")
	}
	return left
}

// isAlive tells whether a process is there and no zombie. It belongs to us, so its number is not another's yet.
func isAlive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

func (o *owned) awaitEnd(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := o.left()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left of the host: %v", left)
		}
	}
}

// diskDir is a new folder on the file system that hosts use.
func diskDir(t *testing.T) string {
	t.Helper()
	testhost.Require(t)
	dir, err := os.MkdirTemp("/var/tmp", "testhost-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestStopLeavesNothing(t *testing.T) {
	o := startOwner(t, diskDir(t), "")
	o.hold.Close()
	if err := o.owner.Wait(); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if left := o.left(); len(left) != 0 {
		t.Errorf("Stop left %v", left)
	}
}

func TestKilledOwner(t *testing.T) {
	o := startOwner(t, diskDir(t), "")
	if err := o.owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	o.awaitEnd(t)
}

// Owner and keeper are killed, so nobody cleans up; PID 1 dies all the same and the next Start sweeps the rest.
func TestKilledKeeperIsSwept(t *testing.T) {
	dir := diskDir(t)
	o := startOwner(t, dir, "")
	if err := unix.Kill(o.keeper, unix.SIGSTOP); err != nil { // so that it sees no end of its owner
		t.Fatal(err)
	}
	if err := o.owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(o.keeper, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of PID 1", func() bool { return !isAlive(o.pid) })
	if _, err := os.Stat(o.dir); err != nil {
		t.Fatalf("the folder is gone without a sweep: %v", err)
	}
	next := startOwner(t, dir, "")
	if left := o.left(); len(left) != 0 {
		t.Errorf("after the next Start there is left of the first host: %v", left)
	}
	if _, err := os.Stat(next.dir); err != nil {
		t.Errorf("the next host: %v", err)
	}
}

func TestTwoHostsAtOnce(t *testing.T) {
	dir := diskDir(t)
	a, b := startOwner(t, dir, ""), startOwner(t, dir, "")
	if a.dir == b.dir || a.cgroup == b.cgroup || !isAlive(a.pid) || !isAlive(b.pid) {
		t.Errorf("hosts %+v and %+v", a, b)
	}
	a.hold.Close()
	a.awaitEnd(t)
	if !isAlive(b.pid) {
		t.Error("the end of one host ended the other")
	}
}

// Where no disk is to be had, the host keeps its files on an ext4 image; and it never takes to tmpfs.
func TestOverlayAndTmpfsAreNoDisk(t *testing.T) {
	testhost.Require(t)
	if _, err := testhost.Start(t.Context(), testhost.Options{Dir: "/dev/shm"}); err == nil || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("a host on tmpfs: error %v, want a refusal", err)
	}
	for _, need := range []string{"mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(need); err != nil {
			if os.Getenv("ONEBIT_CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	dir := diskDir(t)
	for _, name := range []string{"upper", "work", "overlay"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	overlay := filepath.Join(dir, "overlay")
	o := startOwner(t, overlay, fmt.Sprintf("mount -t overlay -o lowerdir=/etc,upperdir=%[1]s/upper,workdir=%[1]s/work o %[2]s", dir, overlay))
	if o.home != "ext2/ext3" || !strings.HasPrefix(o.disk, "ext4 image on overlay in ") {
		t.Errorf("the home is on %s, Disk is %q; want an ext4 image on overlay", o.home, o.disk)
	}
	o.hold.Close()
	if err := o.owner.Wait(); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "upper/onebit-testhost/host-*")); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}

// What lies on other mounts of the machine is inside too, and is not changed by the host.
func TestOtherMounts(t *testing.T) {
	dir := diskDir(t)
	from, at := filepath.Join(dir, "from"), filepath.Join(dir, "at")
	for _, d := range []string{from, at} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "file"), []byte("seen"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := inMounts(t, fmt.Sprintf("mount --bind %s %s", from, at), "-test.run=^TestOtherMountInside$", "-test.v")
	cmd.Env = append(os.Environ(), "TESTHOST_OTHER_MOUNT="+at)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestOtherMountInside") {
		t.Errorf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(from, "file")); err != nil || string(got) != "seen" {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
}

// TestOtherMountInside is what TestOtherMounts runs in a mount namespace of its own.
func TestOtherMountInside(t *testing.T) {
	h := testhost.Require(t)
	at := os.Getenv("TESTHOST_OTHER_MOUNT")
	if at == "" {
		return
	}
	file := filepath.Join(at, "file")
	if got := run(t, h, h.User, "cat", file); got != "seen" {
		t.Errorf("the user reads %q", got)
	}
	run(t, h, "root", "sh", "-c", "echo changed >"+file)
}
