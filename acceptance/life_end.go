package acceptance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// What is waited for before the memory of the GPU must be back, and how much
// may be missing then.
const (
	settleGTT = 30 * time.Second
	epsGTT    = 0.5 // GiB
)

// awaitExit records an end of the server that is not ours.
func (l *life) awaitExit(ctx context.Context) {
	defer close(l.exitSeen)
	select {
	case <-ctx.Done():
		return
	case <-l.server.Exited():
	}
	l.mu.Lock()
	ours := l.stopped
	l.mu.Unlock()
	if ours {
		return
	}
	status, err := l.server.Wait(ctx)
	if err != nil {
		return
	}
	l.fail(l.log.drain(ctx))
	killed := l.host.oomKilled(l.o.Now(), readHostFacts(l.o.Root))
	proof := ""
	if mayBeVictim(status) {
		proof = l.victim().proof(ctx)
	}
	l.put(recordExit, exitRecord{Code: status.Code, Signal: int(status.KilledBy()), Text: status.String(), OOMKilled: killed, KilledBy: proof}, true)
	l.found(l.faces.Exit(detect.Exit{Status: status, OOMKilled: killed, KilledBy: proof}))
	l.end(whyFault, "the server ended by itself: "+status.String())
}

// victim is what is known of the server by those who may kill it.
func (l *life) victim() victim {
	v := victim{root: l.o.Root}
	v.pids, _ = l.host.seen([]int{l.server.PID()})
	l.mu.Lock()
	defer l.mu.Unlock()
	v.scope, v.group = l.scope, l.group
	return v
}

// awaitEnd gives a server whose connection broke the time to be seen ending.
func (l *life) awaitEnd(ctx context.Context) {
	wait := time.NewTimer(exitWait)
	defer wait.Stop()
	select {
	case <-l.exitSeen:
	case <-ctx.Done():
	case <-wait.C:
	}
}

// teardown ends the server and everything that the life started, and looks
// whether anything is left.
func (l *life) teardown(ctx context.Context) error {
	var trouble error
	if l.server != nil {
		trouble = l.stop(ctx)
	}
	var err error
	kill, cancel := context.WithTimeout(ctx, killPatience)
	l.escaped, err = l.fence.escaped(l.begin.Ticks).End(kill)
	cancel()
	trouble = errors.Join(trouble, err)
	if l.server == nil {
		return trouble
	}
	if left := l.whoListens(l.port); left.PID != 0 {
		return errors.Join(trouble, fmt.Errorf("port %d of the server is still listened on, by process %d", l.port, left.PID))
	}
	return trouble
}

// stop ends the server and what holds it.
func (l *life) stop(ctx context.Context) error {
	gone := false
	select {
	case <-l.server.Exited():
		if l.exitSeen != nil {
			<-l.exitSeen // it ended by itself, and that is being recorded
		}
		gone = true
	default:
	}
	l.mu.Lock()
	l.stopped = true
	grace := faultGrace
	switch {
	case l.room.short:
		grace = 0 // it writes on while it ends
	case l.why == whyDone:
		grace = stopGrace
	}
	l.mu.Unlock()
	l.fail(l.log.ending()) // what it says from now on is about its end
	if gone {
		return l.server.Stop(ctx, grace)
	}
	return l.tellToEnd(ctx, grace)
}

// tellToEnd tells the server to end, and takes down how it does.
func (l *life) tellToEnd(ctx context.Context, grace time.Duration) error {
	began := l.o.Now()
	if err := l.server.Stop(ctx, grace); err != nil {
		return err
	}
	status, err := l.server.Wait(ctx) // it has ended
	l.ending = &stopRecord{
		GraceMS: grace.Milliseconds(), TookMS: l.o.Now().Sub(began).Milliseconds(),
		Status: status.String(), Signal: int(status.KilledBy()), Killed: l.server.Killed(),
	}
	return err
}

// awaitGTT waits until the memory of the GPU that a life used is given back. It
// says what is missing, "" if nothing is.
func awaitGTT(ctx context.Context, root string, before *float64, most time.Duration) string {
	if before == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now := readHostFacts(root).GTTUsedGiB
		if now != nil && *now <= *before+epsGTT {
			return ""
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("%s GiB of GTT are in use, %.1f were before the life that ended last", gib(now), *before)
		case <-tick.C:
		}
	}
}

// refuse records a life that was not begun.
func (l *life) refuse(end endRecord) error {
	end.LogLines, end.Shape = map[engine.LogKind]int{}, shape{Launches: map[int]int{}}
	return errors.Join(l.ledger.append(recordStart, l.begin), l.ledger.append(recordEnd, end), l.ledger.sync())
}

// close writes the end of the life.
func (l *life) close(ctx context.Context, trouble error) {
	l.fail(errors.Join(trouble, l.answers.Close()))
	l.host.mu.Lock()
	samples := l.host.memory
	l.host.mu.Unlock()
	l.found(l.faces.Memory(samples))
	l.mu.Lock()
	rec := endRecord{Why: l.why, Detail: l.detail, Escaped: l.escaped, Stopped: l.ending}
	from, to := l.from, l.to
	l.mu.Unlock()
	var err error
	if rec.Changed, err = l.sums.changed(ctx); err != nil {
		l.fail(err)
	}
	rec.SamplesSHA256, err = sumEvidence(ctx, filepath.Join(l.dir, SamplesName))
	l.fail(err)
	rec.AnswersSHA256, err = sumEvidence(ctx, filepath.Join(l.dir, AnswersName))
	l.fail(err)
	rec.Shape = l.log.shape()
	rec.LogLines, rec.ServerLogSHA256 = l.log.totals()
	rec.LoadFromUS, rec.LoadUS = from, max(0, to-from)
	if l.other != nil {
		s := l.other.Summary(from, to)
		rec.Neighbour = &neighbourSummary{Units: s.Units, Unit: s.Unit, Runs: s.Runs, Failed: s.Failed, Died: s.Died, AliveUS: s.AliveUS}
	}
	rec.GTTAfterGiB = readHostFacts(l.o.Root).GTTUsedGiB
	l.measured(&rec)
	if rec.Why == whyFault {
		rec.Tasks = l.replies.join(l.log.lastTasks())
	}
	if trouble != nil {
		rec.Teardown = trouble.Error()
	}
	l.put(recordEnd, rec, true)
}
