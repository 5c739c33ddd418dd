package acceptance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// markBook is the leaks of a life, shared by its workers.
type markBook struct {
	mu    sync.Mutex
	known leaks
}

func (m *markBook) add(nonce string, id int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[nonce] = id
}

func (m *markBook) find(text string, own int) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known.find(text, own)
}

// load runs the closed loop: every worker sends its next request when it has
// the answer to the one before. It returns when the plan's load is complete or
// the life ends.
func (l *life) load(ctx context.Context) {
	l.setPhase(phaseLoad)
	l.mu.Lock()
	l.from = l.us()
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.to = l.us()
		l.mu.Unlock()
	}()
	if why := l.contextTooSmall(ctx); why != "" {
		l.end(whyPlan, why)
		return
	}
	maker, err := newPrompter(ctx, l.planned, l.plan.Sentinels, l.tokenize)
	if err != nil {
		l.lost(ctx, 0, err)
		return
	}
	prompts := make(chan prompt, 2*l.plan.Load.InFlight)
	var group errgroup.Group
	group.Go(func() error { l.produce(ctx, maker, prompts); return nil })
	for id := range l.plan.Load.InFlight {
		group.Go(func() error { l.work(ctx, id, prompts); return nil })
	}
	group.Wait()
	l.settle(ctx)
	if ctx.Err() == nil {
		l.end(whyDone, "")
	}
}

// contextTooSmall compares the plan's context with the server's.
func (l *life) contextTooSmall(ctx context.Context) string {
	slots, err := l.client.Slots(ctx)
	if err != nil || len(slots) == 0 || slots[0].ContextLen == 0 {
		return "" // the server does not say; it will when a request does not fit
	}
	lengths, n := l.plan.Load, slots[0].ContextLen
	each := slices.Max(lengths.PromptTokens) + slices.Max(lengths.NPredict)
	if *l.plan.Server.KVUnified {
		each *= lengths.InFlight
	}
	if each > n {
		return fmt.Sprintf("the load needs a context of %d tokens, the server made one of %d", each, n)
	}
	return ""
}

func (l *life) tokenize(ctx context.Context, text string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(l.plan.Load.RequestDeadline))
	defer cancel()
	return l.client.Tokenize(ctx, text)
}

// produce makes prompts ahead of the workers, until there are as many as the
// plan says or its time is over.
func (l *life) produce(ctx context.Context, maker *prompter, out chan<- prompt) {
	defer close(out)
	var over <-chan time.Time
	if d := time.Duration(l.plan.Load.Duration); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	for id := 0; l.plan.Load.Requests == 0 || id < l.plan.Load.Requests; id++ {
		pr, err := maker.prompt(ctx, id)
		if err != nil {
			l.lost(ctx, id, err)
			return
		}
		l.marks.add(pr.Nonce, id)
		select {
		case out <- pr:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// work sends one request after the other.
func (l *life) work(ctx context.Context, worker int, prompts <-chan prompt) {
	for {
		intended := l.us()
		select {
		case <-ctx.Done():
			return
		case pr, more := <-prompts:
			if !more || ctx.Err() != nil {
				return
			}
			l.request(ctx, worker, intended, pr)
		}
	}
}

// request sends one request and records how it ended.
func (l *life) request(ctx context.Context, worker int, intended int64, pr prompt) {
	rec := requestRecord{
		ID: pr.ID, Worker: worker, Nonce: pr.Nonce, PromptTarget: pr.Target, PromptTokens: pr.Tokens,
		NPredict: pr.NPredict, ProbsAsked: pr.Probs, IntendedUS: intended, StartUS: l.us(), Slot: -1,
	}
	ask := engine.CompletionRequest{Prompt: pr.Text, NPredict: pr.NPredict, Seed: int64(pr.ID), IgnoreEOS: false}
	if pr.Probs {
		ask.NProbs = 1
	}
	own, cancel := context.WithTimeout(ctx, time.Duration(l.plan.Load.RequestDeadline))
	answer, err := l.client.Complete(own, ask)
	cancel()
	rec.EndUS = l.us()
	switch {
	case err == nil:
		l.read(&rec, answer)
	case ctx.Err() != nil:
		rec.Outcome = outcomeCensored
	case errors.Is(err, context.DeadlineExceeded):
		rec.Outcome = outcomeDeadline
		rec.Error = fmt.Sprintf("no answer within %s", time.Duration(l.plan.Load.RequestDeadline))
	default:
		rec.Outcome, rec.Error = outcomeNoAnswer, err.Error()
		l.awaitEnd(ctx)
	}
	l.finish(rec, answer)
}

// read judges an answer into its record.
func (l *life) read(rec *requestRecord, a *engine.Answer) {
	rec.Outcome, rec.Status, rec.Slot = outcomeAnswered, a.Status, a.SlotID
	rec.Predicted, rec.Observed = a.TokensPredicted, len(a.Tokens)
	rec.Bytes, rec.SHA256 = len(a.Raw), sumOf(a.Raw)
	rec.Faces = a.Faults()
	if other, leaked := l.marks.find(a.Content, rec.ID); leaked {
		rec.Faces = append([]engine.AnswerFault{{
			Face: FaceLeak, Detail: fmt.Sprintf("the answer has the nonce of request %d", other),
		}}, rec.Faces...)
	}
	for _, w := range a.Warnings() {
		rec.Warnings = append(rec.Warnings, w.Face)
	}
}

// finish records a request; a fault goes to the disk at once and ends the load.
func (l *life) finish(rec requestRecord, a *engine.Answer) {
	face, detail := requestFault(rec, false, false)
	overcommit := slices.ContainsFunc(rec.Faces, func(f engine.AnswerFault) bool { return f.Face == engine.FaceContext })
	l.put(recordRequest, rec, face != "" || overcommit)
	if rec.Outcome != outcomeCensored {
		l.count(1, 0)
	}
	switch {
	case face != "":
		l.count(0, 1)
		l.keep(rec, a)
		l.end(whyFault, fmt.Sprintf("request %d: %s: %s", rec.ID, face, detail))
	case overcommit:
		l.end(whyPlan, rec.Faces[0].Detail)
	}
}

// keep saves the bytes of an answer that had a fault.
func (l *life) keep(rec requestRecord, a *engine.Answer) {
	if a == nil {
		return
	}
	dir := filepath.Join(l.dir, FaultsDir)
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		l.fail(err)
		return
	}
	l.fail(atomicfile.Write(filepath.Join(dir, fmt.Sprintf("request-%06d.body", rec.ID)), a.Raw, 0o644))
}

// lost ends the life because a prompt could not be made: it does not fit, or
// the server did not count its tokens.
func (l *life) lost(ctx context.Context, id int, err error) {
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, errOvercommit) {
		l.end(whyPlan, err.Error())
		return
	}
	rec := requestRecord{ID: id, Slot: -1, Outcome: outcomeNoAnswer, Error: err.Error(), IntendedUS: l.us(), StartUS: l.us()}
	if errors.Is(err, context.DeadlineExceeded) {
		rec.Outcome = outcomeDeadline
	} else {
		l.awaitEnd(ctx)
	}
	rec.EndUS = l.us()
	l.finish(rec, nil)
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

// settle waits until the log, which a thread of its own writes, has the launch
// of every answer, and closes the account of the slots: what comes next is not
// part of the load.
func (l *life) settle(ctx context.Context) {
	for range 50 {
		l.fail(l.log.drain())
		l.mu.Lock()
		ended := l.ended
		l.mu.Unlock()
		if l.log.shape().launched() >= ended || ctx.Err() != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.log.freeze()
}
