package acceptance

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/load"
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// makePrompts prepares the prompts: the server counts their tokens. It reports
// false if the life ends for it.
func (l *life) makePrompts(ctx context.Context) bool {
	deadline := time.Duration(l.plan.Load.RequestDeadline)
	ask, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if why := l.contextTooSmall(ask); why != "" {
		l.end(whyPlan, why)
		return false
	}
	if names, err := l.client.Models(ask); err == nil && len(names) == 1 && l.client.API != "" {
		l.client.Model = names[0] // which many servers want to be told
	}
	var err error
	if l.counter, err = newTokenCounter(ctx, l.client, deadline); err == nil {
		l.maker, err = newPrompter(ctx, l.planned, l.sentinels, l.counter.byAnswer, l.counter.count)
	}
	if err != nil {
		l.lost(ctx, err)
	}
	return err == nil
}

// load sends the plan's requests by its schedule. It returns when the last has
// ended, or the life ends.
func (l *life) load(ctx context.Context) {
	l.setPhase(phaseLoad)
	l.untilLogged(ctx, func() bool { return l.log.quiet(l.quiet + l.counter.answered) })
	l.log.beginLoad()
	l.mu.Lock()
	l.from = l.us()
	l.mu.Unlock()
	plan := l.plan.Load
	load.Run(ctx, load.Schedule{
		Kind: plan.Schedule, InFlight: plan.InFlight, Every: time.Duration(plan.Every),
		Requests: plan.Requests, Duration: time.Duration(plan.Duration),
	}, l.us, l.next, l.request)
	l.mu.Lock()
	l.to = l.us()
	l.mu.Unlock()
	l.settle(ctx)
	l.loadOver(context.WithoutCancel(ctx))
	if ctx.Err() == nil && l.isTooLong() {
		l.overdue()
	}
	if ctx.Err() == nil {
		l.end(whyDone, "")
	}
}

// contextTooSmall compares the longest request of the plan with what the server
// gives one slot: it caps that at the length which the model was trained for.
// What all slots share is the plan's own number, checked when it was read.
func (l *life) contextTooSmall(ctx context.Context) string {
	slots, err := l.client.Slots(ctx)
	if err != nil || len(slots) == 0 || slots[0].ContextLen == 0 {
		return "" // the server does not say; it will when a request does not fit
	}
	longest, most := l.plan.longest(l.planned)
	if n := slots[0].ContextLen; longest+most > n {
		return fmt.Sprintf("a request of up to %d + %d tokens does not fit into the %d that the server gives a slot", longest, most, n)
	}
	return ""
}

// next makes the prompt of a request. Without one the load is over.
func (l *life) next(ctx context.Context, id int) (prompt, bool) {
	if l.isTooLong() {
		return prompt{}, false
	}
	pr, err := l.maker.prompt(ctx, id)
	if err != nil {
		l.lost(ctx, err)
		return pr, false
	}
	if pr.Kind == kindSentinel {
		id = -1 - pr.Sentinel // see ask
	}
	l.faces.Sent(id, pr.Nonce)
	return pr, ctx.Err() == nil
}

// request sends one request and records how it ended.
func (l *life) request(ctx context.Context, worker int, intended int64, pr prompt) {
	rec := requestRecord{
		ID: pr.ID, Number: l.planned.FirstPrompt + pr.ID, Worker: worker, Kind: pr.Kind, Sentinel: pr.Sentinel, Nonce: pr.Nonce,
		PromptTarget: pr.Target, PromptTokens: pr.Tokens, NPredict: pr.NPredict, ProbsAsked: pr.Probs,
		IntendedUS: intended, StartUS: l.us(), Slot: -1, Outcome: outcomeCensored,
	}
	a, x := l.ask(ctx, pr)
	rec.EndUS = l.us()
	if x == nil {
		l.put(recordRequest, rec, false)
		return
	}
	switch {
	case a != nil:
		rec.read(a)
		l.fail(l.answers.Add(pr.ID, a.Raw))
	case x.Deadline:
		rec.Outcome, rec.Error = outcomeDeadline, x.Err.Error()
	default:
		rec.Outcome, rec.Error = outcomeNoAnswer, x.Err.Error()
	}
	rec.Findings = l.faces.Exchange(x)
	if known := l.known[pr.Sentinel]; a != nil && pr.Kind == kindSentinel && known != nil {
		rec.Findings = append(rec.Findings, l.faces.Sentinel(known, a, l.sentinels.Tau)...)
		l.log.exempt(span{slot: rec.Slot, from: rec.StartUS, to: rec.EndUS})
	}
	telling := slices.ContainsFunc(rec.Findings, func(f detect.Finding) bool { return f.Grade != detect.Warning })
	l.put(recordRequest, rec, telling)
	l.replies.add(&rec, telling)
	l.count(1, 0)
	if telling && a != nil {
		l.keep(fmt.Sprintf("request-%06d", pr.ID), a.Raw)
	}
	l.weigh(rec.Findings)
	if a != nil {
		if why := l.counter.over(pr, a); why != "" {
			l.end(whyPlan, why)
		}
	}
}

// read takes what an answer tells into its record.
func (rec *requestRecord) read(a *engine.Answer) {
	rec.Outcome, rec.Status, rec.Slot = outcomeAnswered, a.Status, a.SlotID
	rec.Predicted, rec.Observed = a.TokensPredicted, len(a.Tokens)
	rec.Bytes, rec.SHA256 = len(a.Raw), sumOf(a.Raw)
	rec.Chars, rec.TextSum = len(a.Content), textSum(a.Content)
	if a.FirstToken > 0 {
		rec.FirstUS = rec.StartUS + a.FirstToken.Microseconds()
	}
}

// textSum tells texts apart.
func textSum(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 16)
}

// keep saves the bytes of an answer that had a fault where they are found at
// once.
func (l *life) keep(name string, raw []byte) {
	dir := filepath.Join(l.dir, FaultsDir)
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		l.fail(err)
		return
	}
	l.fail(atomicfile.Write(filepath.Join(dir, name+".body"), raw, 0o644))
}

// keepCut saves what came of an answer that was cut off, or grew without an end:
// its beginning and its end.
func (l *life) keepCut(pr prompt, err error) {
	var cut *engine.CutError
	if !errors.As(err, &cut) || len(cut.Raw) == 0 {
		return
	}
	raw := cut.Raw
	if len(raw) > 2*cutShare {
		raw = slices.Concat(raw[:cutShare], raw[len(raw)-cutShare:])
	}
	name := fmt.Sprintf("request-%06d", pr.ID)
	if pr.ID < 0 {
		name = fmt.Sprintf("sentinel-%d", pr.Sentinel)
	}
	l.keep(name+"-cut", raw)
}

// cutShare bounds what is kept of either end of a broken answer, in bytes.
const cutShare = 64 << 10

// lost ends the life because a prompt could not be made: it does not fit, or
// the server did not count its tokens.
func (l *life) lost(ctx context.Context, err error) {
	l.pulse.beat()
	if runnersOwn(err) {
		l.fail(err)
	}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, errOvercommit), errors.Is(err, errUncounted):
		l.end(whyPlan, err.Error())
		return
	}
	x := &detect.Exchange{ID: -1, NPredict: 1, Err: err, Deadline: errors.Is(err, context.DeadlineExceeded)}
	if told := new(unsound); errors.As(err, &told) {
		x = told.exchange
		l.keep("token-count", x.Answer.Raw)
	} else if !x.Deadline {
		l.awaitEnd(ctx)
	}
	l.found(l.faces.Exchange(x))
	l.end(whyFault, err.Error())
}

// settle waits until the log has the launch of every answer, and closes the
// account of the slots: what comes next is not part of the load.
func (l *life) settle(ctx context.Context) {
	l.untilLogged(ctx, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.log.launched() >= l.ended
	})
	l.log.endLoad()
}

// untilLogged waits for what the log, which a thread of its own writes, must
// still say. A log that does not say it is waited for in vain.
func (l *life) untilLogged(ctx context.Context, said func() bool) {
	for range 50 {
		l.fail(l.log.drain(ctx))
		if said() || ctx.Err() != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
}
