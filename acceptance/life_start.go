package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// start brings up the server. It reports false if that failed; the ledger then
// says how.
func (l *life) start(ctx context.Context) bool {
	rec := startupRecord{GTTUsedGiB: readHostFacts(l.o.Root).GTTUsedGiB}
	began := l.o.Now()
	var err error
	for rec.Tries = 1; ; rec.Tries++ {
		bound := l.log.count(engine.LogBind)
		err = l.startOnce(ctx, &rec)
		l.pulse.beat()
		if ctx.Err() != nil {
			return false
		}
		if rec.PID == 0 {
			l.fail(err)
			return false
		}
		l.fail(l.log.drain(ctx))
		rec.PortTaken = errors.Is(err, engine.ErrExited) && l.log.count(engine.LogBind) > bound
		if !rec.PortTaken || rec.Tries == portTries {
			break
		}
		l.fail(l.server.Stop(ctx, 0))
	}
	rec.TookMS = l.o.Now().Sub(began).Milliseconds()
	if err != nil {
		l.notReady(ctx, err, rec)
		return false
	}
	added := l.identify(ctx, &rec)
	l.put(recordStartup, rec, true)
	if l.sameProgram(rec.Binary, added); l.reason() != "" {
		return false
	}
	l.o.Log.Info("server is ready", "arm", l.begin.Arm, "pid", rec.PID, "port", rec.Port, "took_ms", rec.TookMS)
	return true
}

// startOnce starts the server on a port of its own and waits until it is ready.
func (l *life) startOnce(ctx context.Context, rec *startupRecord) error {
	var err error
	if rec.Port, err = engine.FreePort(ctx); err != nil {
		return err
	}
	process, where, err := l.fence.start(ctx, roleServer, engine.ProcessOptions{
		Program: l.arm.Server.Name, Env: l.arm.ServerEnv, LogPath: filepath.Join(l.dir, ServerLogName),
		Args: slices.Concat(l.arm.ServerArgs, []string{"--host", "127.0.0.1", "--port", strconv.Itoa(rec.Port)}),
	})
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	rec.PID, rec.Contained = process.PID(), where
	l.mu.Lock()
	l.server, l.port = process, rec.Port
	if l.scope, l.group = "", ""; strings.HasPrefix(where, l.fence.prefix) {
		l.scope, l.group = where, groupOf(filepath.Join(l.o.Root, "proc"), process.PID())
	}
	l.mu.Unlock()
	l.log.started(l.us())
	l.client = &engine.Client{BaseURL: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(rec.Port)), API: apiOf(l.plan.Load.API)}
	wait, cancel := context.WithTimeout(ctx, time.Duration(l.plan.LoadDeadline))
	defer cancel()
	return (&engine.Server{Process: process}).WaitReady(wait, l.client)
}

// notReady records a server that never was.
func (l *life) notReady(ctx context.Context, err error, rec startupRecord) {
	rec.Problem, rec.Detail = "exit", err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		rec.Problem = "deadline"
		rec.Detail = fmt.Sprintf("the server was not ready within %s", time.Duration(l.plan.LoadDeadline))
	}
	rec.AllocFailed = l.log.count(engine.LogAlloc) > 0
	rec.OOMKilled = l.host.oomKilled(l.o.Now(), readHostFacts(l.o.Root))
	if errors.Is(err, engine.ErrExited) {
		status, err := l.server.Wait(ctx)
		l.fail(err)
		rec.Signal = int(status.KilledBy())
		if status.KilledBy() == unix.SIGKILL && !rec.OOMKilled {
			proof := l.victim().proof(ctx)
			if rec.OOMKilled = proof != ""; rec.OOMKilled {
				rec.Detail += ": " + proof
			}
		}
	}
	if rec.Changed, err = l.sums.changed(ctx); err != nil {
		return
	}
	l.put(recordStartup, rec, true)
	a := newArm(l.plan, l.table, l.begin)
	a.startup = &rec
	cause := a.startupCause()
	l.found(l.faces.Startup(detect.FailedStart{Detail: rec.Detail, Cause: cause, Log: l.log.telling()}))
	l.end(whyFault, rec.Detail)
}

// identify records what serves: which program it really is, and where the model
// lies. It gives the files of the package's folder that are served from and that
// the package does not have.
func (l *life) identify(ctx context.Context, rec *startupRecord) (added []string) {
	l.fail(l.log.drain(ctx))
	placed := l.log.placement()
	rec.Devices, rec.Offloaded, rec.Layers = placed.Devices, placed.Offloaded, placed.Layers
	l.mu.Lock()
	l.listener = l.whoListens(l.port)
	pid := l.listener.PID
	l.mu.Unlock()
	if pid == 0 {
		pid = rec.PID
	}
	rec.ServerPID = pid
	m := mapped(ctx, filepath.Join(l.o.Root, "proc"), pid, l.arm.pkg)
	rec.Binary, rec.Foreign = m.program, m.foreign
	return m.added
}

// sameProgram ends the life if what serves is not the package.
func (l *life) sameProgram(binary identity, added []string) {
	want := digestIn(l.arm.pkg, binary.Name)
	switch {
	case len(added) > 0:
		l.end(whyChanged, fmt.Sprintf("the server has loaded %s, which package %s does not have", added[0], l.arm.Package.Name))
	case want != "" && binary.Digest != "" && binary.Digest != want:
		l.end(whyChanged, fmt.Sprintf("the server runs a %s with the digest %s, that of package %s has %s", binary.Name, binary.Digest, l.arm.Package.Name, want))
	}
}

// whoListens names the process of ours that listens on the port; the zero
// Identity if the host does not tell.
func (l *life) whoListens(port int) detect.Identity {
	proc := filepath.Join(l.o.Root, "proc")
	owners, err := systemd.Owners(proc, []uint16{uint16(port)})
	if err != nil {
		return detect.Identity{}
	}
	for _, owner := range owners {
		for _, pid := range owner.PIDs {
			ticks, alive := engine.StartTicks(proc, pid)
			if alive {
				return detect.Identity{PID: pid, Start: ticks}
			}
		}
	}
	return detect.Identity{}
}

// sameListener looks whether the port is still answered by the process that was
// ready on it: a front end may have started its server anew.
func (l *life) sameListener() {
	l.mu.Lock()
	before, port := l.listener, l.port
	l.mu.Unlock()
	if before.PID == 0 {
		return
	}
	if ticks, alive := engine.StartTicks(filepath.Join(l.o.Root, "proc"), before.PID); alive && ticks == before.Start {
		return // looking through every process's files takes long
	}
	if now := l.whoListens(port); now.PID != 0 && now != before {
		l.found(l.faces.Restart(before, now))
		l.mu.Lock()
		l.listener = now
		l.mu.Unlock()
	}
}

// place compares where the model lies with the plan.
func (l *life) place() {
	want := l.plan.Device
	if want.Name == "" && want.Layers == "" {
		return
	}
	placed := l.log.placement()
	l.found(l.faces.Placement(detect.Placement{
		WantDevice: want.Name, WantLayers: want.Layers, CountsAs: want.Counts,
		Devices: placed.Devices, Offloaded: placed.Offloaded, Layers: placed.Layers,
	}))
}

// apiOf translates the plan's word for an API into the client's.
func apiOf(plan string) string {
	if plan == APICompletion {
		return ""
	}
	return plan
}
