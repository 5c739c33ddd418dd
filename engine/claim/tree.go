package claim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
)

const (
	// endGrace is how long what runs may take to end when it is asked to.
	endGrace = 10 * time.Second
	// settle is how long what a command has started may take to end after it, as the last part of a pipe does.
	settle = time.Second
	// leftGrace is how long what is left after that may take when it is asked.
	leftGrace = 2 * time.Second
	// killPatience is how long what was killed may need to leave, for instance out of a driver that frees much.
	killPatience = 30 * time.Second
	// lookEvery is how often the memory and the terminal are looked at.
	lookEvery = 250 * time.Millisecond
)

// start starts the command, in its cage and under the eyes of the guard.
func (r *running) start(ctx context.Context) error {
	self := r.o.Lock.line(r.record)
	r.mark = engine.Mark{Proc: "/proc", Text: markOf(self), Since: engine.BootTicks()}
	var err error
	if r.guard, err = r.newGuard(); err != nil {
		return err
	}
	// Children from before, of the shell that became us for instance, are none of the command's, and what they leave
	// could not be told from what the command leaves.
	if r.adopts = r.o.Adopt && !engine.HasChildren(); r.adopts {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("adopt what the command leaves behind: %w", err)
		}
	}
	o := engine.ProcessOptions{
		Program: r.o.Program, Args: r.o.Args, Env: append(slices.Clip(r.o.Env), r.mark.Text), Dir: r.o.Dir,
		Stdin: r.o.Stdin, Stdout: r.o.Stdout, Stderr: r.o.Stderr, Cage: r.o.Cage, Watcher: r.guard,
	}
	if r.o.Terminal != nil && r.o.Foreground {
		if group, err := engine.Foreground(r.o.Terminal); err == nil && group == syscall.Getpgrp() {
			o.Terminal, r.handed = r.o.Terminal, true
		}
	}
	if gains(o.Program) && !strings.Contains(o.Program, "=") {
		o.Program, o.Args = "/usr/bin/env", append([]string{o.Program}, o.Args...)
	}
	if r.o.Terminal != nil {
		if r.settings, err = engine.Settings(r.o.Terminal); err != nil {
			r.o.Note("%v", err)
		}
	}
	r.proc, err = engine.StartProcess(ctx, o)
	if err != nil {
		r.takeTerminal()
		return err
	}
	r.result.Place = "process group"
	if why := r.proc.Uncaged(); why != nil && r.o.Cage != nil {
		r.o.Note("the command is in no scope: %v", why)
	} else if r.o.Cage != nil {
		r.result.Place = r.o.Scope
	}
	return nil
}

// gains tells whether a program gets rights by its file, as sudo does. One that is held while it starts would not get
// them; env is held in its place, and becomes the program with its environment as it is.
func gains(program string) bool {
	info, err := os.Stat(program)
	if err != nil {
		return false
	}
	n, err := unix.Getxattr(program, "security.capability", nil)
	return info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 || err == nil && n > 0
}

// newGuard is the process that ends the tree when we are gone. The lock is open in it too.
func (r *running) newGuard() (*exec.Cmd, error) {
	text, err := json.Marshal(order{
		Mark: r.mark, Scope: r.o.Scope, Path: r.o.Lock.Path, Writable: r.hold.writable, Wrote: r.hold.wrote, History: r.o.History, Record: r.record,
	})
	if err != nil {
		return nil, fmt.Errorf("order the guard of a claim: %w", err)
	}
	cmd := exec.Command("/proc/self/exe") // us, also when our file has been replaced
	cmd.Args = append(slices.Clip(r.o.Guard), string(text))
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{r.hold.file}
	return cmd, nil
}

// watch waits until the command has ended, and ends it when its time is over, when the memory runs out, or when we
// are told to. It returns how it ended.
func (r *running) watch(ctx context.Context) (how string) {
	limit, tick := time.NewTimer(r.o.Limit), time.NewTicker(lookEvery)
	defer limit.Stop()
	defer tick.Stop()
	var kill <-chan time.Time // set: it was asked to end
	done := ctx.Done()
	if r.o.Signals != nil {
		done = nil
	}
	ask := func(why string, s syscall.Signal) {
		how, kill = why, time.After(cmp.Or(r.o.Grace, endGrace))
		r.ask(s)
	}
	blind, moved := false, false
	for {
		select {
		case <-r.proc.Exited():
			return r.exited(how)
		case <-kill:
			return r.exited(how)
		case <-limit.C:
			if kill == nil {
				r.result.ExitCode = ExitTimeLimit
				r.o.Note("the time of %v is over: the command is ended", r.o.Limit)
				ask("time limit", syscall.SIGTERM)
			}
		case s := <-r.o.Signals:
			sig, ok := s.(syscall.Signal)
			if !ok || kill != nil {
				return r.exited(how)
			}
			ask(fmt.Sprintf("signal %d (%v)", int(sig), sig), sig)
		case <-done:
			if done = nil; kill == nil {
				ask("interrupted", syscall.SIGTERM)
			}
		case <-tick.C:
			r.orphans()
			if r.o.Terminal != nil && r.proc.MindTerminal(r.o.Terminal) {
				r.handed = true
			}
			if !moved && !r.o.Lock.is(r.hold.file) {
				moved = true
				r.o.Note("%s was removed or replaced: others do not see that this claim goes on, and may begin beside it", r.o.Lock.Path)
			}
			have, err := MemAvailable(r.o.Sensors.Root)
			if err != nil && !blind && r.o.FloorGiB > 0 {
				blind = true
				r.o.Note("the memory floor is not guarded: %v", err)
			}
			if err == nil && have < r.o.FloorGiB {
				r.result.ExitCode = ExitFailed
				r.o.Note("%.1f GiB of memory are available, the floor is %g GiB: the command is killed", have, r.o.FloorGiB)
				return "memory floor" // there is no time to ask
			}
		}
	}
}

// ask sends a signal to all of the tree. What is stopped goes on, or it would not hear of it.
func (r *running) ask(s syscall.Signal) {
	r.proc.Signal(s)
	engine.SignalEach(r.away, s)
	engine.SignalEach(r.away, syscall.SIGCONT)
}

// exited notes how the command itself ended, if it has.
func (r *running) exited(why string) string {
	select {
	case <-r.proc.Exited():
	default:
		return why // it is killed now
	}
	r.status()
	if why == "" {
		return r.result.Status.String()
	}
	return why
}

// status takes over how the command ended, once it has. What ended it for a reason of ours stays.
func (r *running) status() {
	s, err := r.proc.Wait(context.Background())
	if err != nil {
		return
	}
	r.result.Status = s
	if r.result.ExitCode == 0 {
		r.result.ExitCode = s.Code
		if s.Signal != 0 {
			r.result.ExitCode = 128 + int(s.Signal)
		}
	}
}

// clean ends what is left of the command and makes sure that nothing is.
func (r *running) clean(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	defer r.takeTerminal()
	select {
	case <-r.proc.Exited():
		r.await(ctx, settle)
		for _, pid := range r.members() {
			r.result.Left = append(r.result.Left, engine.Describe("/proc", pid))
		}
		if len(r.result.Left) > 0 {
			r.ask(syscall.SIGTERM)
			r.await(ctx, min(leftGrace, cmp.Or(r.o.Grace, endGrace)))
		}
	default:
	}
	kill, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	err := killAll(kill, r.hunted, r.away)
	// What is not found like this is in the group or the cage. The guard is dismissed only if nothing is.
	if stop := r.proc.Stop(ctx, 0); err == nil {
		err = stop
	}
	if err != nil {
		r.kept = true
		r.proc.Release()
		return fmt.Errorf("end the command: %w; the lock stays taken until it is gone", err)
	}
	r.status()
	return nil
}

// await gives what is left some time to end by itself.
func (r *running) await(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(r.members()) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.o.Signals:
			return // whoever asks for the end gets it
		}
	}
}

// members lists what lives of the tree.
func (r *running) members() []int {
	pids := append(r.proc.Members(), r.away()...)
	slices.Sort(pids)
	return slices.Compact(pids)
}

// away lists what bears the mark or descends from us, and may have left the group and the cage.
func (r *running) away() []int {
	pids := marked(r.mark)
	if r.adopts {
		pids = append(pids, engine.Descendants("/proc", os.Getpid())...)
		pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == r.guard.Process.Pid })
	}
	return pids
}

// marked lists what bears a mark and may be the command's. A manager that was given the command's environment starts
// services with it, which are none of it.
func marked(m engine.Mark) []int {
	pids, _ := m.Members()
	ours := service(m.Proc, os.Getpid())
	return slices.DeleteFunc(pids, func(pid int) bool {
		unit := service(m.Proc, pid)
		return unit != "" && unit != ours
	})
}

// service is the control group of the service that a process is of, "" if it is of none.
func service(proc string, pid int) string {
	text, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	for row := range strings.Lines(string(text)) {
		// 0::/user.slice/… or, on a host with cgroup v1, 1:name=systemd:/user.slice/…
		fields := strings.SplitN(strings.TrimSuffix(row, "\n"), ":", 3)
		if len(fields) != 3 || fields[1] != "" && fields[1] != "name=systemd" {
			continue
		}
		for path := fields[2]; len(path) > 1; path = filepath.Dir(path) {
			switch filepath.Ext(path) {
			case ".service":
				return path
			case ".scope":
				return ""
			}
		}
	}
	return ""
}

// orphans lists what was adopted, and takes leave of what of it has ended. It lists that too: whoever ends may have
// started another a moment before, so that nothing is left only where there is neither.
func (r *running) orphans() []int {
	if !r.adopts {
		return nil
	}
	pids := slices.DeleteFunc(engine.Children("/proc", os.Getpid()), r.isOwn)
	r.reap(pids)
	return pids
}

// isOwn: a child that is waited for elsewhere.
func (r *running) isOwn(pid int) bool { return pid == r.proc.PID() || pid == r.guard.Process.Pid }

// reap takes leave of children that have ended.
func (r *running) reap(pids []int) {
	for _, pid := range pids {
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// hunted kills what was adopted faster than it can start others and end, and lists what is left of it.
func (r *running) hunted() []int {
	for range 200 {
		if !r.adopts {
			break
		}
		pids := engine.KillChildren(r.proc.PID(), r.guard.Process.Pid)
		if len(pids) == 0 {
			break
		}
		r.reap(pids)
	}
	return r.orphans()
}

// killAll kills what is listed until nothing is. Each list is worked off by itself, while it is young.
func killAll(ctx context.Context, lists ...func() []int) error {
	pause := 2 * time.Millisecond
	for clear := 0; clear < 2; { // what was just born may hide from one look
		var left []int
		for _, list := range lists {
			engine.SignalEach(list, syscall.SIGKILL)
			left = append(left, list()...)
		}
		if clear++; len(left) > 0 {
			clear = 0
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still there after SIGKILL: processes %s", strings.Trim(fmt.Sprint(left), "[]"))
		case <-time.After(pause):
		}
		pause = min(2*pause, 500*time.Millisecond)
	}
	return nil
}

// takeTerminal gives the terminal back to who had it, if the command has it still. One that did not end by itself had
// no chance to put it in order.
func (r *running) takeTerminal() {
	if r.handed {
		r.handed, r.result.Terminal = false, true
		if err := engine.SetForeground(r.o.Terminal, syscall.Getpgrp()); err != nil {
			r.o.Note("%v", err)
		}
	}
	if r.settings == nil || r.result.Status.KilledBy() == 0 && r.result.ExitCode == r.result.Status.Code {
		return
	}
	if group, err := engine.Foreground(r.o.Terminal); err != nil || group != syscall.Getpgrp() {
		return // somebody else's now
	}
	if err := engine.SetSettings(r.o.Terminal, r.settings); err != nil {
		r.o.Note("%v", err)
	}
}
