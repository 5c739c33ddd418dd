package claim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		script string
		code   int
		how    string
	}{
		{"exit 0", 0, "exit status 0"},
		{"exit 1", 1, "exit status 1"},
		{"exit 124", 124, "exit status 124"},
		{"exit 125", 125, "exit status 125"},
		{"exit 255", 255, "exit status 255"},
		{"kill -TERM $$", 143, "signal 15 (terminated)"},
		{"kill -SEGV $$", 139, "signal 11 (segmentation fault)"},
		{"kill -KILL $$", 137, "signal 9 (killed)"},
	} {
		o := options(t, "ulimit -c 0; "+test.script)
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != test.code || r.Record.How != test.how || len(r.Left) > 0 {
			t.Errorf("%s: %d, %q, left %v", test.script, r.ExitCode, r.Record.How, r.Left)
		}
		if !isFree(o.Lock) || read(o.Lock.Path) != "" {
			t.Errorf("%s: the lock is not free, or holds %q", test.script, read(o.Lock.Path))
		}
		list, err := ReadHistory(o.History, r.Record.Since, r.Record.Since)
		if err != nil || len(list) != 1 || list[0].How != test.how || list[0].Ended == nil {
			t.Errorf("%s: history %+v, %v", test.script, list, err)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"no label":   func(o *Options) { o.Label = " " },
		"bad label":  func(o *Options) { o.Label = "a\nb" },
		"no limit":   func(o *Options) { o.Limit = 0 },
		"no floor":   func(o *Options) { o.FloorGiB = -1 },
		"NaN":        func(o *Options) { o.FloorGiB = math.NaN() },
		"long label": func(o *Options) { o.Label = strings.Repeat("long", 60) },
		"no program": func(o *Options) { o.Program = "" },
	} {
		o := options(t, "exit 0")
		change(&o)
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o := options(t, "")
	o.Program = filepath.Join(t.TempDir(), "nothing")
	if _, err := Run(t.Context(), o); !errors.Is(err, os.ErrNotExist) || !isFree(o.Lock) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// The command has no file of the lock, sees what is claimed in it, and its streams are ours.
func TestCommandSeesTheClaim(t *testing.T) {
	o := options(t, `cat "$1"; ls -l /proc/self/fd /proc/$$/fd; read x; echo "read $x" >&2`)
	o.Args = append(o.Args, "sh", o.Lock.Path, "--api-key", "hunter2hunter2")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, "a line")
	w.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	o.Stdin, o.Stdout, o.Stderr = r, out, out
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text := read(out.Name())
	if strings.Contains(text, "-> "+o.Lock.Path) || !strings.Contains(text, "0 -> pipe:") {
		t.Errorf("its files are\n%s", text)
	}
	for _, want := range []string{`1bit-claim {"label":"a test","user":"tester","pid":` + fmt.Sprint(os.Getpid()), "(masked)", "read a line\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text+read(o.History), "hunter2") {
		t.Error("a secret is told")
	}
}

func meminfo(t *testing.T, root string, gib float64) {
	write(t, filepath.Join(root, "proc/meminfo"), fmt.Sprintf("MemTotal: 134217728 kB\nMemFree: 1 kB\nMemAvailable:   %d kB\n", int(gib*1024*1024)))
}

func TestMemoryFloor(t *testing.T) {
	o := options(t, "exit 0")
	o.FloorGiB = 8
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrMemory) || !isFree(o.Lock) {
		t.Errorf("an unknown amount of memory: %v", err)
	}
	meminfo(t, o.Sensors.Root, 7.9)
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "7.9 GiB are available, the floor is 8 GiB") {
		t.Errorf("too little: %v", err)
	}
	meminfo(t, o.Sensors.Root, 8)
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 0 {
		t.Errorf("enough: %+v, %v", r, err)
	}
	// It runs out while a command runs that would not end when it is asked.
	begun := filepath.Join(t.TempDir(), "begun")
	o.Args = []string{"-c", `trap "" TERM; : >"$1"; while :; do sleep 60; done`, "sh", begun}
	low := make(chan struct{})
	go func() {
		defer close(low)
		until(t, "the command's start", exists(begun))
		meminfo(t, o.Sensors.Root, 7)
	}()
	r, err := Run(t.Context(), o)
	<-low
	if err != nil || r.ExitCode != ExitFailed || r.Record.How != "memory floor" || !isFree(o.Lock) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Memory that is not told while a command runs is said and ends nothing.
func TestMemoryNotTold(t *testing.T) {
	o := options(t, "")
	o.FloorGiB = 1
	meminfo(t, o.Sensors.Root, 2)
	noted := make(chan string, 9)
	o.Note = func(format string, args ...any) { noted <- fmt.Sprintf(format, args...) }
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Args = []string{"-c", `: >"$1"; read x <"$1"; exit 3`, "sh", fifo}
	done := make(chan string)
	go func() {
		f, _ := os.OpenFile(fifo, os.O_RDONLY, 0) // the command runs
		f.Close()
		os.Remove(filepath.Join(o.Sensors.Root, "proc/meminfo"))
		text := <-noted
		os.WriteFile(fifo, []byte("go\n"), 0)
		done <- text
	}()
	r, err := Run(t.Context(), o)
	if text := <-done; err != nil || r.ExitCode != 3 || !strings.Contains(text, "not guarded") {
		t.Errorf("%+v, %v, %s", r, err, text)
	}
}

// flock(1) and a claim exclude each other, both ways, and tell who holds the lock.
func TestFlockExcludes(t *testing.T) {
	o := options(t, `flock -n "$1" true; echo $? >"$2"`)
	out := filepath.Join(t.TempDir(), "out")
	o.Args = append(o.Args, "sh", o.Lock.Path, out)
	if _, err := Run(t.Context(), o); err != nil || read(out) != "1\n" {
		t.Errorf("flock -n under a claim ended with %q, %v", read(out), err)
	}
	begun := filepath.Join(t.TempDir(), "begun")
	other := exec.Command("flock", o.Lock.Path, "sh", "-c", `: >"$1"; read x`, "sh", begun, "--token", "hunter2hunter2")
	end, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the other tool", exists(begun))
	h, held, err := o.Lock.Holder()
	if err != nil || !held || h == nil || h.PID != other.Process.Pid || !strings.HasPrefix(h.Command, "flock "+o.Lock.Path) || strings.Contains(h.Command, "hunter2") || h.User == "" {
		t.Errorf("%+v, %v, %v", h, held, err)
	}
	o.Wait = -1
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (flock", other.Process.Pid)) {
		t.Errorf("it did not wait, and ended with %v", err)
	}
	o.Wait = 50 * time.Millisecond
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "within 50ms") {
		t.Errorf("it waited a moment, and ended with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 99)
	o.Wait, o.Say = 0, func(text string) { said <- text; cancel() }
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("it was given up, and ended with %v", err)
	}
	if text := <-said; !strings.Contains(text, "waiting: process ") || !strings.Contains(text, "flock") {
		t.Errorf("said %q", text)
	}
	o.Args, o.Say = []string{"-c", "exit 9"}, func(string) { end.Close() }
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 9 {
		t.Errorf("after the other tool: %+v, %v", r, err)
	}
	other.Wait()
	if list, err := o.Lock.Waiting(); len(list) > 0 || err != nil {
		t.Errorf("still waiting: %v, %v", list, err)
	}
}

// A claim within a claim would wait for itself.
func TestClaimInsideAClaim(t *testing.T) {
	o := options(t, `env >"$1"`)
	out := filepath.Join(t.TempDir(), "out")
	var inner error
	o.Args = append(o.Args, "sh", out)
	o.Args[1] += `; read x <"$1.go"`
	if err := syscall.Mkfifo(out+".go", 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, _ := os.OpenFile(out+".go", os.O_WRONLY, 0)
		in := o
		in.Env = strings.Split(read(out), "\n")
		_, inner = Run(t.Context(), in)
		fmt.Fprintln(f)
		f.Close()
	}()
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	<-done
	if !errors.Is(inner, ErrInside) {
		t.Errorf("the inner claim ended with %v", inner)
	}
	o.Args, o.Env = []string{"-c", "exit 0"}, strings.Split(read(out), "\n")
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 0 {
		t.Errorf("a claim after the one whose mark it bears: %+v, %v", r, err)
	}
}
