package claim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// The children of the process that became a claim are none of the command's, and what they leave is not either.
func TestChildrenFromBefore(t *testing.T) {
	dir := t.TempDir()
	c := claimOrder{Lock: filepath.Join(dir, "lock"), Label: "before", Script: "sleep 60 & exit 3", Notes: filepath.Join(dir, "notes")}
	cmd := claimer(t, c)
	number := ownNumber(60)
	cmd.Args = []string{"sh", "-c", `sleep ` + number + ` & (setsid sleep 1` + number + ` &); exec "$0" claim.test`, cmd.Path}
	cmd.Path = "/bin/sh"
	if self, err := os.Executable(); err != nil {
		t.Fatal(err)
	} else {
		cmd.Args[3] = self
	}
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(read(c.Notes), "left: process") || len(processes("sleep\x0060\x00")) > 0 {
		t.Errorf("what the command left is not ended: %s", read(c.Notes))
	}
	for _, seconds := range []string{number, "1" + number} {
		pids := processes("sleep\x00" + seconds + "\x00")
		if len(pids) != 1 {
			t.Errorf("sleep %s was ended", seconds)
		}
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// What goes on by starting another and ending is caught.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	alive := filepath.Join(dir, "alive")
	chain := fmt.Sprintf(`trap "" TERM HUP; link() { [ -e %[1]s.stop ] && exit; : >%[1]s; link & exit; }; link`, alive)
	c := claimOrder{Lock: filepath.Join(dir, "lock"), Label: "chain", Script: `env -i PATH="$PATH" setsid sh -c '` + chain + `' & until [ -e ` + alive + ` ]; do :; done; exit 4`, Notes: filepath.Join(dir, "notes")}
	t.Cleanup(func() { write(t, alive+".stop", "") })
	cmd := claimer(t, c)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 4 {
		t.Fatalf("%v: %s", err, read(c.Notes))
	}
	os.Remove(alive)
	// A link that lives makes the file again when it begins; none may.
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		if exists(alive)() {
			t.Fatal("the chain goes on and the lock is free")
		}
	}
}

// A claim that is stopped has its limit still: the guard has it go on.
func TestStoppedClaim(t *testing.T) {
	dir := t.TempDir()
	c := claimOrder{Lock: filepath.Join(dir, "lock"), Label: "stopped", Script: ": >" + dir + "/begun; sleep 3600", Limit: 500 * time.Millisecond, Notes: filepath.Join(dir, "notes")}
	cmd := claimer(t, c)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the command", exists(dir+"/begun"))
	cmd.Process.Signal(syscall.SIGSTOP)
	done := make(chan struct{})
	go func() { defer close(done); cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		cmd.Process.Signal(syscall.SIGCONT)
		<-done
		t.Fatal("it stays stopped")
	}
	if code := cmd.ProcessState.ExitCode(); code != ExitTimeLimit || !isFree(Lock{Path: c.Lock}) {
		t.Errorf("exit status %d", code)
	}
}

// Who waits and is suspended is passed by, and is served when it goes on.
func TestSuspendedWaiter(t *testing.T) {
	o := options(t, "exit 5")
	c := claimOrder{Lock: o.Lock.Path, Label: "suspended", Script: "exit 6"}
	begun := filepath.Join(t.TempDir(), "begun")
	other := exec.Command("flock", o.Lock.Path, "sh", "-c", `: >"$1"; read x`, "sh", begun)
	end, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the other tool", exists(begun))
	cmd := claimer(t, c)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "its place", func() bool { list, _ := o.Lock.Waiting(); return len(list) == 1 })
	cmd.Process.Signal(syscall.SIGSTOP)
	until(t, "its stop", func() bool { return engine.IsStopped("/proc", cmd.Process.Pid) })
	end.Close()
	other.Wait()
	o.Wait = -1
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	cmd.Process.Signal(syscall.SIGCONT)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 6 {
		t.Errorf("the suspended one: exit status %d", code)
	}
}

// What is in the queue and is no file of ours blocks nobody, and what others wrote of themselves commands no terminal.
func TestQueueOfOthers(t *testing.T) {
	o := options(t, "exit 5")
	place := func(n int) string { return filepath.Join(o.Lock.queue(), fmt.Sprintf("%012d%s", n, ticketSuffix)) }
	write(t, filepath.Join(o.Lock.queue(), "other"), "")
	if err := syscall.Mkfifo(place(1), 0o666); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(place(1), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := syscall.Flock(int(pipe.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	o.Wait = -1
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	write(t, place(2), `{"label":"next","user":"\u001b[2Jroot","command":"a\nb","pid":2}`)
	other, err := os.Open(place(2))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), o)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), `it is the turn of "next"`) || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("another's turn: %q", err)
	}
}

// A history that is no file is not waited for.
func TestHistoryIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), HistoryFile)
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadHistory(path, time.Time{}, time.Now()); err == nil {
		t.Errorf("read %v", list)
	}
}

// Whether it is under a claim is told by what lives.
func TestUnder(t *testing.T) {
	l := Lock{}.line(Record{PID: os.Getpid()})
	if pid, under := Under("/proc", []string{"A=b", markOf(l)}); !under || pid != os.Getpid() {
		t.Errorf("%d, %v", pid, under)
	}
	l.Start++
	for _, env := range [][]string{nil, {markOf(l)}, {markVariable + "=1-2"}, {markVariable + "="}} {
		if _, under := Under("/proc", env); under {
			t.Errorf("%q: under a claim", env)
		}
	}
}

// A lock that is moved away under a claim is told of.
func TestMovedLock(t *testing.T) {
	o := options(t, `mv "$1" "$1.moved"; read x <"$1.go"`)
	o.Args = append(o.Args, "sh", o.Lock.Path)
	if err := syscall.Mkfifo(o.Lock.Path+".go", 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 9)
	o.Note = func(format string, args ...any) { told <- fmt.Sprintf(format, args...) }
	done := make(chan string)
	go func() {
		text := <-told
		os.WriteFile(o.Lock.Path+".go", []byte("go\n"), 0)
		done <- text
	}()
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if text := <-done; !strings.Contains(text, "was removed or replaced") {
		t.Errorf("told %q", text)
	}
}

// What another service's control group holds is none of the command's, whatever its environment says.
func TestService(t *testing.T) {
	proc := t.TempDir()
	for pid, test := range map[int]struct{ text, want string }{
		2: {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service\n", "/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service"},
		3: {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/1bit-claim-1.scope\n", ""},
		4: {"3:cpu:/a.service\n1:name=systemd:/system.slice/llm.service/below\n", "/system.slice/llm.service"},
		5: {"0::/\n", ""},
		6: {"", ""},
	} {
		write(t, filepath.Join(proc, fmt.Sprint(pid), "cgroup"), test.text)
		if got := service(proc, pid); got != test.want {
			t.Errorf("%q: %q", test.text, got)
		}
	}
}

// A service that systemd started with the environment of a command is left alone.
func TestMarkedService(t *testing.T) {
	m := engine.Mark{Proc: t.TempDir(), Text: markVariable + "=1-2-3"}
	for pid, unit := range map[int]string{os.Getpid(): "/app.slice/own.service", 1000001: "/app.slice/own.service", 1000002: "/app.slice/llm.service", 1000003: "/app.slice/claim.scope"} {
		dir := filepath.Join(m.Proc, fmt.Sprint(pid))
		write(t, filepath.Join(dir, "stat"), "1 (x) S 1 11 11 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5054295\n")
		write(t, filepath.Join(dir, "environ"), m.Text+"\x00")
		write(t, filepath.Join(dir, "cgroup"), "0::"+unit+"\n")
	}
	if got := marked(m); !slices.Equal(got, []int{1000001, 1000003}) {
		t.Errorf("of the command: %v", got)
	}
}

// A place that the dead of another account left, and that is the last one, moves nobody behind it.
func TestLastPlaceOfTheDead(t *testing.T) {
	l := Lock{Path: filepath.Join(t.TempDir(), "lock")}
	// Nobody may remove a folder as if it were a file that has contents.
	write(t, filepath.Join(l.queue(), "999999999999"+ticketSuffix, "kept"), "")
	write(t, filepath.Join(l.queue(), "000000000001"+ticketSuffix, "kept"), "")
	first, err := l.enter(t.Context(), Record{Label: "a", PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.enter(t.Context(), Record{Label: "b", PID: os.Getpid()})
	if list, _ := l.Waiting(); err != nil || len(list) != 2 || list[0].Label != "a" || !l.first(first) || l.first(second) {
		t.Errorf("%v, waiting %v", err, list)
	}
	l.leave(first)
	l.leave(second)
}
