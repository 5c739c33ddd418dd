package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// sentinelProbs is how many candidates a sentinel asks for: the distance of the
// first two says whether a difference can be one of rounding.
const sentinelProbs = 5

// Passes of a sentinel on the quiet server.
const (
	passReference = 1
	passControl   = 2 // the same at once again
	passFinal     = 3 // after the load
)

// quietSentinels asks every sentinel twice before the load, one after the
// other. The first answer is what those under load are compared with.
func (l *life) quietSentinels(ctx context.Context) {
	if l.plan.Sentinels.Every == 0 || l.reason() != "" {
		return
	}
	l.setPhase(phaseSentinels)
	for i := range l.plan.Sentinels.PromptTokens {
		first := l.askQuiet(ctx, i, passReference)
		if first == nil {
			return
		}
		l.known[i] = first
		if second := l.askQuiet(ctx, i, passControl); second != nil {
			l.found(l.faces.Identity(first, second))
		}
		if l.reason() != "" {
			return
		}
	}
}

// probe asks again after the load, when the server is quiet: one sentinel twice
// in a row, and the others against what they were before.
func (l *life) probe(ctx context.Context) {
	l.setPhase(phaseProbe)
	first := l.askQuiet(ctx, 0, passFinal)
	if first == nil {
		return
	}
	second := l.askQuiet(ctx, 0, passFinal)
	if second == nil {
		return
	}
	bad := l.faces.Identity(first, second)
	for i := range len(l.known) {
		again := first
		if i > 0 {
			if again = l.askQuiet(ctx, i, passFinal); again == nil {
				return
			}
		}
		bad = append(bad, l.faces.Sentinel(l.known[i], again, l.sentinels.Tau)...)
	}
	rec := probeRecord{}
	if n := slices.IndexFunc(bad, func(f detect.Finding) bool { return f.Grade != detect.Warning }); n >= 0 {
		rec = probeRecord{Face: bad[n].Face, Detail: bad[n].Detail}
	}
	l.put(recordProbe, rec, rec.Face != "")
	l.found(bad)
}

// askQuiet sends one sentinel while nothing else is asked of the server. It
// returns nil if there is no sound answer; then the ledger says why.
func (l *life) askQuiet(ctx context.Context, index, pass int) *engine.Answer {
	pr, err := l.maker.sentinel(ctx, -1-index, index)
	if err != nil {
		l.lost(ctx, err)
		return nil
	}
	a, x := l.ask(ctx, pr)
	if x == nil {
		return nil
	}
	list := l.faces.Exchange(x)
	l.found(list)
	if a != nil && a.Status == http.StatusOK {
		l.quiet++
	}
	if a == nil || slices.ContainsFunc(list, func(f detect.Finding) bool { return f.Grade != detect.Warning }) {
		if a != nil {
			l.keep(fmt.Sprintf("sentinel-%d-%d", index, pass), a.Raw)
		}
		return nil
	}
	rec := sentinelRecord{Sentinel: index, Pass: pass, Prompt: sumOf([]byte(pr.Text))}
	rec.read(a)
	l.put(recordSentinel, rec, false)
	if pass == passReference && l.plan.Sentinels.Reference != "" {
		l.compareReference(rec, a)
	}
	return a
}

// read takes what others will be compared with.
func (s *sentinelRecord) read(a *engine.Answer) {
	s.Text, s.IDs, s.Tokens = a.Content, a.TokenIDs, make([]sentinelToken, 0, len(a.Tokens))
	for _, t := range a.Tokens {
		known := sentinelToken{ID: t.ID, Logprob: finite(t.Logprob), Gap: finite(t.TopGap)}
		if t.ID < 0 {
			if known.Bytes = t.Bytes; len(t.Bytes) == 0 {
				known.Bytes = []byte(t.Text)
			}
		}
		s.Tokens = append(s.Tokens, known)
	}
}

// finite is a number that JSON can tell, or nil.
func finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// compareReference compares a quiet answer with that of another run.
func (l *life) compareReference(rec sentinelRecord, a *engine.Answer) {
	known, err := readReference(l.plan.referenceDir(), rec.Prompt)
	if err != nil {
		l.end(whyPlan, err.Error())
		return
	}
	l.found(l.faces.Sentinel(known, a, l.sentinels.Tau))
}

// readReference finds the quiet answer of another run to the same prompt.
func readReference(dir, promptSum string) (*engine.Answer, error) {
	raw, err := readInput(filepath.Join(dir, LedgerName))
	if err != nil {
		return nil, fmt.Errorf("read the reference of the sentinels: %w", err)
	}
	var known *sentinelRecord
	_, err = scanLedger(bytes.NewReader(raw), func(r *record) error {
		if r.Kind != recordSentinel || known != nil {
			return nil
		}
		s, err := decode[sentinelRecord](r.line)
		if err == nil && s.Pass == passReference && s.Prompt == promptSum {
			known = s
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the reference of the sentinels: %w", err)
	case known != nil:
		return known.answer(), nil
	}
	return nil, fmt.Errorf("the reference %s has no answer to this sentinel: it was asked with other lengths or has another tokenizer", dir)
}

// answer makes of a record what detectors compare.
func (s *sentinelRecord) answer() *engine.Answer {
	a := &engine.Answer{Status: 200, Content: s.Text, TokenIDs: s.IDs, TokensPredicted: max(len(s.IDs), len(s.Tokens)), SlotID: -1}
	for _, t := range s.Tokens {
		a.Tokens = append(a.Tokens, engine.Token{ID: t.ID, Text: string(t.Bytes), Bytes: t.Bytes, Logprob: t.Logprob, TopGap: t.Gap})
	}
	return a
}

// ask sends one request and waits for its end, at most for the plan's deadline.
// Without an Exchange the life ended first.
func (l *life) ask(ctx context.Context, pr prompt) (*engine.Answer, *detect.Exchange) {
	deadline := time.Duration(l.plan.Load.RequestDeadline)
	wait, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	r := engine.CompletionRequest{
		Prompt: pr.Text, NPredict: pr.NPredict, Seed: int64(max(0, pr.ID)), ReturnTokens: true, Stream: l.plan.Load.Stream,
	}
	switch {
	case pr.Kind == kindSentinel:
		r.NProbs = sentinelProbs
	case pr.Probs:
		r.NProbs = 1
	}
	a, err := l.client.Complete(wait, r)
	x := &detect.Exchange{ID: pr.ID, Kind: pr.Kind, NPredict: pr.NPredict, ProbsAsked: r.NProbs > 0, Answer: a, Err: err}
	if pr.Kind == kindSentinel {
		x.ID = -1 - pr.Sentinel // all askings of one share a nonce
	}
	if err == nil {
		return a, x
	}
	l.pulse.beat()
	if runnersOwn(err) {
		l.fail(fmt.Errorf("ask the server: %w", err))
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	l.keepCut(pr, err)
	if errors.Is(err, context.DeadlineExceeded) {
		x.Deadline = true
		x.Err = fmt.Errorf("no answer within %s", deadline)
		return nil, x
	}
	l.awaitEnd(ctx)
	return nil, x
}
