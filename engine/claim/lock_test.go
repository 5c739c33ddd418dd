package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// What a file system answers that cannot lock is an error, and nothing is run.
func TestFileSystemsThatCannotLock(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		unix.ENOLCK:     "locking does not work on its file system",
		unix.EOPNOTSUPP: "locking does not work on its file system",
		unix.EBADF:      "its file system locks only what may be written",
		unix.EIO:        "input/output error",
		unix.ESTALE:     "made and removed all the time",
	} {
		out := filepath.Join(t.TempDir(), "out")
		o := options(t, `: >"$1"`)
		o.Args = append(o.Args, "sh", out)
		o.Lock.flock = func(int, int) error { return errno }
		_, err := Run(t.Context(), o)
		if !errors.Is(err, ErrLock) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), o.Lock.Path) {
			t.Errorf("%v: %v", errno, err)
		}
		if exists(out)() {
			t.Errorf("%v: it ran unlocked", errno)
		}
	}
	// A handle that went stale once, and a signal, are tried again.
	o := options(t, "exit 6")
	calls := 0
	o.Lock.flock = func(fd, how int) error {
		switch calls++; calls {
		case 1:
			return unix.EINTR
		case 2:
			return unix.ESTALE
		}
		return unix.Flock(fd, how)
	}
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 6 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFilesThatAreNoLock(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	write(t, real, "precious\n")
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink(real, link), syscall.Mkfifo(fifo, 0o666)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link: "symbolic link", fifo: "no regular file", dir: "is a directory",
		filepath.Join(dir, "missing", "lock"): "/etc/tmpfiles.d/1bit-gpu.conf", filepath.Join(real, "lock"): "not a directory",
	} {
		o := options(t, "exit 0")
		o.Lock.Path = path
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrLock) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if err := o.Lock.Usable(); !errors.Is(err, ErrLock) {
			t.Errorf("%s is usable: %v", path, err)
		}
	}
	if text := read(real); text != "precious\n" {
		t.Errorf("the file behind the link holds %q", text)
	}
	fine := Lock{Path: filepath.Join(dir, "new")}
	if err := fine.Usable(); err != nil || exists(fine.Path)() {
		t.Errorf("a lock that is not made yet: %v", err)
	}
	if !isFree(fine) || fine.Usable() != nil {
		t.Error("a lock that is made is not usable")
	}
	if info, err := os.Stat(fine.Path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("it is made as %v, %v", info.Mode(), err)
	}
}

// Whoever removes the lock file does not make two holders of it.
func TestLockThatIsRemoved(t *testing.T) {
	l := Lock{Path: filepath.Join(t.TempDir(), "lock")}
	old, err := l.take(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *hold)
	go func() {
		h, err := l.take(t.Context(), true)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	until(t, "the waiter", func() bool {
		return strings.Contains(read("/proc/locks"), "-> FLOCK") && waits(l)
	})
	if err := os.Remove(l.Path); err != nil {
		t.Fatal(err)
	}
	other, err := l.take(t.Context(), false) // that of the new file
	if err != nil {
		t.Fatal(err)
	}
	old.release() // the waiter gets the old one, which is worth nothing
	select {
	case <-got:
		t.Fatal("two hold the lock")
	default:
	}
	until(t, "the waiter at the new file", func() bool { return waits(l) })
	other.release()
	h := <-got
	if !l.is(h.file) {
		t.Error("the waiter has a file that is gone")
	}
	h.release()
}

// waits tells whether somebody waits in the kernel for the file that is there now.
func waits(l Lock) bool {
	file, err := l.identity()
	for line := range strings.Lines(read("/proc/locks")) {
		if err == nil && strings.Contains(line, "->") && strings.Contains(line, " "+file+" ") {
			return true
		}
	}
	return false
}

// The text of others in a lock file is shown and stays byte for byte; lines of ours that a crash left go.
func TestTextOfOthers(t *testing.T) {
	stale := func(l Lock) string {
		text, err := json.Marshal(line{Record: Record{Label: "old", PID: os.Getpid()}, Start: 1, Boot: l.bootID()})
		if err != nil {
			t.Fatal(err)
		}
		return linePrefix + string(text) + "\n"
	}
	for _, test := range []struct{ what, before, after string }{
		{"nothing", "", ""},
		{"a label", "hw gate until 11:09\nsecond line\n", "hw gate until 11:09\nsecond line\n"},
		{"no newline", "4711", "4711"},
		{"a stale line", "STALE", ""},
		{"a label and stale lines", "gate\nSTALESTALE", "gate\n"},
		{"a stale line in the middle", "STALEgate\n", "STALEgate\n"},
		{"a torn line", "gate\n1bit-claim {\"label\":\"x", "gate\n"},
		{"bytes", "\x00\xff\xfe\n\n", "\x00\xff\xfe\n\n"},
		{"much", strings.Repeat("a line of others\n", 10000), strings.Repeat("a line of others\n", 10000)},
	} {
		l := Lock{Path: filepath.Join(t.TempDir(), "lock")}
		before, after := strings.ReplaceAll(test.before, "STALE", stale(l)), strings.ReplaceAll(test.after, "STALE", stale(l))
		write(t, l.Path, before)
		h, err := l.take(t.Context(), false)
		if err == nil {
			err = h.write(Record{Label: "a test", PID: os.Getpid()})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := read(l.Path); !strings.HasPrefix(got, after) || !strings.Contains(got, "\n"+linePrefix+`{"label":"a test"`) && after != "" {
			t.Errorf("%s: under the claim the file holds %.300q", test.what, got)
		}
		if ours, _, err := l.text(); err != nil || ours == nil || ours.Label != "a test" {
			t.Errorf("%s: our line reads %+v, %v", test.what, ours, err)
		}
		h.release()
		if got := read(l.Path); got != after {
			t.Errorf("%s: it is left as %.300q", test.what, got)
		}
	}
	// What others write while we hold it stays too.
	o := options(t, `echo from others >>"$1"`)
	o.Args = append(o.Args, "sh", o.Lock.Path)
	if _, err := Run(t.Context(), o); err != nil || read(o.Lock.Path) != "from others\n" {
		t.Errorf("%v, %q", err, read(o.Lock.Path))
	}
}

// What stands in the file counts only while who wrote it lives.
func TestHolder(t *testing.T) {
	l := Lock{Path: filepath.Join(t.TempDir(), "lock")}
	if h, held, err := l.Holder(); h != nil || held || err != nil {
		t.Errorf("no file: %+v, %v, %v", h, held, err)
	}
	mine, err := l.take(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.release()
	want := Record{Label: "mine", User: "me", PID: os.Getpid(), Command: "x"}
	if err := mine.write(want); err != nil {
		t.Fatal(err)
	}
	h, held, err := l.Holder()
	if diff := cmp.Diff(&want, h); diff != "" || !held || err != nil {
		t.Errorf("%v, %v, (-want +got):\n%s", held, err, diff)
	}
	for what, change := range map[string]func(*line){
		"another start": func(s *line) { s.Start++ },
		"another boot":  func(s *line) { s.Boot = "3e0bc447" },
		"another process": func(s *line) { // one that lives and is not the one that the kernel names
			s.Record = Record{Label: "parent", PID: os.Getppid()}
			*s = l.line(s.Record)
		},
	} {
		s := l.line(want)
		change(&s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.Path, []byte("gate\n"+linePrefix+string(text)+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if h, held, err := l.Holder(); !held || err != nil || h == nil || h.PID != os.Getpid() || h.Label != "" || h.Text != "gate" {
			t.Errorf("%s: %+v, %v, %v", what, h, held, err)
		}
	}
}

// A lock whose taker has ended lives on in what inherited it, which is found.
func TestInheritedLock(t *testing.T) {
	l := Lock{Path: filepath.Join(t.TempDir(), "lock")}
	seconds := ownNumber(70)
	cmd := exec.Command("sh", "-c", `exec 9>>"$1"; flock 9; sleep `+seconds+` & exit 0`, "sh", l.Path)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	h, held, err := l.Holder()
	pids := processes("sleep\x00" + seconds)
	if err != nil || !held || h == nil || len(pids) != 1 || h.PID != pids[0] || h.Command != "sleep "+seconds {
		t.Errorf("%+v, %v, %v, want the heir %v", h, held, err, pids)
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, "the end of the heir", func() bool { _, held, err := l.Holder(); return !held && err == nil })
}

func TestParseLocks(t *testing.T) {
	const table = `1: FLOCK  ADVISORY  WRITE 4711 00:1a:12345 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4712 00:1a:12345 0 EOF
2: POSIX  ADVISORY  WRITE 4713 00:1a:12345 0 EOF
3: FLOCK  ADVISORY  READ 4714 00:1a:12345 0 EOF
4: FLOCK  ADVISORY  WRITE 4715 00:1b:12345 0 EOF
5: FLOCK  ADVISORY  WRITE 0 00:1a:12345 0 EOF
`
	if diff := cmp.Diff([]int{4711, 4714}, parseLocks(table, "00:1a:12345")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseLocks(f *testing.F) {
	f.Add("1: FLOCK  ADVISORY  WRITE 4711 00:1a:12345 0 EOF\n", "00:1a:12345")
	f.Fuzz(func(t *testing.T, table, file string) {
		for _, pid := range parseLocks(table, file) {
			if pid <= 0 || !strings.Contains(table, fmt.Sprint(pid)) {
				t.Errorf("process %d", pid)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("gate\n1bit-claim {\"label\":\"x\",\"pid\":3}\n"))
	f.Add([]byte("1bit-claim {\"label\":\n4711"))
	f.Add([]byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, others := parseText(b)
		if len(others) > 4<<10 || strings.Contains(others, "\x00") {
			t.Errorf("shown: %q", others)
		}
		n := foreign(b)
		rest := string(b[n:])
		if n > 0 && rest != "" && b[n-1] != '\n' || rest != "" && !strings.HasPrefix(rest, linePrefix) {
			t.Errorf("taken for ours: %q of %q", rest, b)
		}
		if foreign(b[:n]) != n {
			t.Errorf("%q ends in a line of ours", b[:n])
		}
	})
}
