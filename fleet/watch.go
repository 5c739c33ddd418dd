package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// A started service is watched from the moment its start job ended.
type watched struct {
	h          *Host
	m          *systemd.Manager
	unit       string
	place      *place
	pkg        PackageRef // what must run, zero where the unit runs no package
	invocation string
	mainPID    int
	restarts   int
	child      int     // the server, once one was seen
	answers    bool    // it said that it is ready
	before     earlier // what ran until this start
	first      earlier // what ran until the first start of the act
	notes      []string
	unchecked  string       // why its answers could not be checked, "" where they were
	taken      func() error // says that another command works on the unit now
}

// A failure is why a service did not pass its health check.
type failure struct {
	reason     string
	replaced   bool     // the process that failed is gone, and with it how it ended
	foreign    bool     // the package is not to blame: it would have failed with any
	invocation string   // the incarnation that failed, "" where it is the watched one
	log        []string // the last lines that it wrote
}

func (f *failure) Error() string { return f.reason }

// logged is the end of the service's log, a note a line.
func (f *failure) logged() []string {
	var notes []string
	for _, line := range f.log {
		notes = append(notes, "its log: "+line)
	}
	return notes
}

func failf(format string, args ...any) error { return &failure{reason: fmt.Sprintf(format, args...)} }

// strange is a failure that is not the package's.
func strange(format string, args ...any) error {
	return &failure{reason: fmt.Sprintf(format, args...), foreign: true}
}

// begin remembers the incarnation that a start made.
func (w *watched) begin(ctx context.Context) error {
	u, err := w.m.Unit(ctx, w.unit)
	if err != nil {
		return err
	}
	w.invocation, w.mainPID, w.restarts = u.InvocationID, u.MainPID, u.NRestarts
	return w.same(ctx, u)
}

// explain adds to a failure who else holds the service's port, and what the service said last.
func (w *watched) explain(ctx context.Context, err error) error {
	var f *failure
	if !errors.As(err, &f) || ctx.Err() != nil {
		return err
	}
	var mine []procInfo
	if u, err := w.m.Unit(ctx, w.unit); err == nil {
		if _, mine, err = w.live(u); err == nil {
			for _, p := range mine {
				w.before.addPort(p.argv, p.env)
			}
		}
	}
	if who := w.h.intruders(w.unit, w.before.ports, mine, nil); who != "" && !strings.Contains(f.reason, who) {
		f.reason += "; " + who
		f.foreign = f.foreign || !w.answers
	}
	f.log = systemd.LogTail(ctx, or(f.invocation, w.invocation), 3)
	return err
}

// live is what runs of the unit, less what outlived the stop before this start: that is the old service.
func (w *watched) live(u *systemd.Unit) (*Live, []procInfo, error) {
	_, procs, err := w.h.live(u, w.place, nil)
	if err != nil {
		return nil, nil, err
	}
	procs = slices.DeleteFunc(procs, w.before.outlived)
	return liveOf(procs, u.MainPID, w.place, nil), procs, nil
}

// same fails where the unit no longer runs the incarnation that is watched.
func (w *watched) same(ctx context.Context, u *systemd.Unit) error {
	err := w.ended(u)
	// Restart= was quicker than we: what fails at once fails again, and then says how.
	for range 100 {
		var f *failure
		if !errors.As(err, &f) || !f.replaced || pause(ctx, healthPoll/5) != nil {
			break
		}
		again, uerr := w.m.Unit(ctx, w.unit)
		if uerr != nil {
			break
		}
		if again.MainPID == 0 || again.ExecMainCode != 0 {
			err = w.ended(again)
		}
	}
	return err
}

// ended says how the incarnation that is watched ended, nil while it lives.
func (w *watched) ended(u *systemd.Unit) error {
	if err := w.byHand(u); err != nil {
		return err
	}
	switch {
	case u.MainPID == w.mainPID && u.MainPID != 0 && u.InvocationID == w.invocation && u.NRestarts == w.restarts:
		return nil
	case u.MainPID == 0 && w.mainPID == 0 && u.ActiveState == "active" && u.InvocationID == w.invocation && u.NRestarts == w.restarts &&
		(u.Type == "oneshot" || u.Type == "forking"):
		return nil // systemd does not know its main process
	}
	if how := ending(u); how != "" {
		return failf("%s", how)
	}
	if u.MainPID != 0 && (u.MainPID != w.mainPID || u.InvocationID != w.invocation || u.NRestarts != w.restarts) {
		return &failure{reason: fmt.Sprintf("the main process ended and another was started (restart %d)", u.NRestarts), replaced: true}
	}
	return failf("there is no main process (%s, result %s)", u.ActiveState, u.Result)
}

// look reads the unit and its processes and checks what must hold at every moment.
func (w *watched) look(ctx context.Context) (procs []procInfo, child *Process, err error) {
	if err := w.taken(); err != nil {
		return nil, nil, err
	}
	u, err := w.m.Unit(ctx, w.unit)
	if err != nil {
		return nil, nil, err
	}
	if err := w.same(ctx, u); err != nil {
		return nil, nil, err
	}
	live, procs, err := w.live(u)
	if err != nil {
		return nil, nil, err
	}
	if live == nil {
		if w.mainPID == 0 {
			return nil, nil, failf("none of its processes is left")
		}
		return nil, nil, nil
	}
	child = live.Child
	if child == nil || !child.proved {
		return procs, nil, nil
	}
	if w.child != 0 && w.child != child.PID && !contains(procs, w.child) {
		return nil, nil, failf("the server process %d ended and another was started", w.child)
	}
	w.child = child.PID
	return procs, child, nil
}

func contains(procs []procInfo, pid int) bool {
	for _, p := range procs {
		if p.pid == pid {
			return true
		}
	}
	return false
}

// healthPoll is the time between two looks at a service that is starting.
const healthPoll = 50 * time.Millisecond

// serves waits until the service answers, checks that the answer comes from the right package and is sound, and
// then watches it for the given time. A *failure says why the service did not pass; any other error says that
// nothing could be established.
func (w *watched) serves(ctx context.Context, watch time.Duration) error {
	deadline := w.h.loadDeadline()
	loading, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	last, began := "it does not listen", w.h.Now()
	var c *engine.Client
	for c == nil {
		procs, _, err := w.look(ctx)
		if err != nil {
			return err
		}
		found, state, err := w.h.ask(ctx, procs)
		switch {
		case err == nil && state == engine.HealthOK:
			c, w.answers = found, true
			continue
		case err == nil:
			last = "still loading"
		case errors.Is(err, errNotListening):
			last = "it does not listen"
		default:
			last = err.Error()
		}
		w.h.progress("%s was started, %s: %s", w.unit, last, w.h.ago(began))
		if err := w.rest(loading, healthPoll); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return failf("no answer within %s: %s", deadline, last)
		}
	}
	w.h.progress("%s answers: its answers are checked", w.unit)
	if err := w.fromPackage(ctx, c); err != nil {
		return err
	}
	if err := w.build(ctx, c); err != nil {
		return err
	}
	if err := w.probe(ctx, c); err != nil || watch <= 0 {
		return err
	}
	watching, cancel := context.WithTimeout(ctx, watch)
	defer cancel()
	for began := w.h.Now(); w.rest(watching, min(10*healthPoll, watch/4)) == nil; {
		w.h.progress("%s answers: watched for %s of %s", w.unit, w.h.ago(began), watch)
		if _, _, err := w.look(ctx); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, _, err := w.look(ctx); err != nil {
		return err
	}
	return w.probe(ctx, c)
}

// fromPackage fails where the processes run from another package than the armed one.
func (w *watched) fromPackage(ctx context.Context, c *engine.Client) error {
	if w.pkg.isZero() {
		return nil
	}
	u, err := w.m.Unit(ctx, w.unit)
	if err != nil {
		return err
	}
	live, procs, err := w.live(u)
	if err != nil {
		return err
	}
	ref, ok := live.runs()
	if ok && !ref.same(w.pkg) {
		return strange("the server runs from %s", ref.Name)
	}
	if !ok && (live == nil || !live.Unreadable) {
		return strange("the server runs from no package")
	}
	own, err := systemd.Listeners(w.h.proc(), pidsOf(procs))
	if err != nil {
		return nil // another user's: whoever answers cannot be told
	}
	var ports []uint16
	for _, a := range own {
		ports = append(ports, a.Port())
	}
	if who := w.h.intruders(w.unit, ports, procs, own); who != "" {
		return strange("whose answers its clients get is not certain: %s", who)
	}
	if err := w.answerer(c, procs); err != nil {
		return err
	}
	if why := moved(w.first.devices, devices(w.h.proc(), procs)); why != "" {
		return failf("%s", why)
	}
	asked := askedDevice(procs)
	if was := w.first.asked; was != "" && asked != was && reflect.DeepEqual(w.first.command, u.ExecStart) {
		return failf("its server was told to run on %s, and before on %s", or(asked, "no device"), was)
	}
	return nil
}

// build fails where the server says that it is another build than the package's.
func (w *watched) build(ctx context.Context, c *engine.Client) error {
	pkg := w.place.pkg(w.pkg.Path)
	if pkg == nil {
		return nil
	}
	quick, cancel := context.WithTimeout(ctx, quickAnswer)
	defer cancel()
	props, err := c.Props(quick)
	if err != nil {
		return ctx.Err() // it does not tell
	}
	switch text, sure := otherBuild(pkg.Manifest, props.BuildInfo); {
	case text == "":
	case sure:
		return failf("%s", text)
	default:
		w.notes = append(w.notes, text)
	}
	return nil
}

// rest waits, but no longer than the main process lives: systemd forgets how a process ended as soon as it has
// started the next one.
func (w *watched) rest(ctx context.Context, d time.Duration) error {
	if w.mainPID == 0 {
		return pause(ctx, d)
	}
	const step = 5 * time.Millisecond
	proc := filepath.Join(w.h.proc(), strconv.Itoa(w.mainPID))
	for ; d > 0; d -= step {
		if err := pause(ctx, min(d, step)); err != nil {
			return err
		}
		if _, err := os.Stat(proc); err != nil {
			return nil
		}
	}
	return nil
}

// gone waits a moment for systemd to notice the end of a process, and then says how it ended.
func (w *watched) gone(ctx context.Context) error {
	for range 10 {
		if _, _, err := w.look(ctx); err != nil {
			return err
		}
		if err := pause(ctx, healthPoll); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
