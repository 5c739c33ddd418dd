package acceptance

import (
	"fmt"
	"net/http"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/load"
	"github.com/1bit-systems/pkg/engine"
)

// arm is one server life as the ledger tells it. It counts requests as they
// come and keeps none, so that its size does not grow with their number.
type arm struct {
	plan  *Plan // as it is for this life
	faces *faceTable
	start startRecord

	startup   *startupRecord
	startupAt time.Time
	load      *loadRecord
	exit      *exitRecord
	watchdog  *watchdogRecord
	watchedAt time.Time
	probes    int // identical requests on the quiet server after the load
	end       *endRecord
	logs      map[logKey]bool
	beside    beside

	requests armRequests
	traces   map[traceKey]*trace
	faulted  map[int]bool // requests with a gating fault, by id
	bySlot   map[int]int  // the same, by the slot that they were seen on
	toFault  *int         // requests that had ended when the first gating fault was seen
}

// logKey is a kind of line; the abort for NaN is told apart from others.
type logKey struct {
	kind     engine.LogKind
	nanAbort bool
}

// armRequests counts the requests of a life.
type armRequests struct {
	ended    int // by themselves, up to the first fault and with it
	answered int
	ok       int // answered without a fault, also of a face that is only reported
	censored int // given up by the runner, or in flight at the first fault
	notSeen  int // answers without the log-probabilities that were asked for

	predicted, observed int // tokens
	httpErrors, nan     int

	prompt, answer int // longest, in tokens
	alike          alike

	all     chances
	bins    map[int]*chances // by length of prompt
	slots   map[int]*chances
	first   map[int]firstTask // of each slot
	latency load.Histogram    // µs from the intended start
	warned  map[string]int
}

// firstTask is the request that a slot served first.
type firstTask struct {
	start   int64
	sight   sight
	faulted bool
}

// Bounds on what a ledger can make us remember. A life has far less.
const (
	mostStrata  = 4096   // slots, lengths of prompts
	mostFaulted = 100000 // faulted requests told apart
)

// newArm begins a life. The plan is the one of this life.
func newArm(p *Plan, faces *faceTable, s startRecord) *arm {
	return &arm{
		plan: p, faces: faces, start: s, logs: map[logKey]bool{},
		traces: map[traceKey]*trace{}, faulted: map[int]bool{}, bySlot: map[int]int{},
		requests: armRequests{
			bins: map[int]*chances{}, slots: map[int]*chances{}, first: map[int]firstTask{}, warned: map[string]int{},
		},
	}
}

// take adds one record of the life.
func (a *arm) take(r *record) error {
	var err error
	switch r.Kind {
	case recordRequest:
		if r.request == nil {
			if r.request, err = decode[requestRecord](r.line); err != nil {
				return err
			}
		}
		a.takeRequest(r.At, r.request)
	case recordStartup:
		a.startupAt = r.At
		a.startup, err = decode[startupRecord](r.line)
	case recordLoad:
		a.load, err = decode[loadRecord](r.line)
	case recordFinding:
		var f *findingRecord
		if f, err = decode[findingRecord](r.line); err == nil {
			a.takeFinding(r.At, f)
		}
	case recordLog:
		var l *logRecord
		if l, err = decode[logRecord](r.line); err == nil {
			a.logs[logKey{l.Kind, l.NaNAbort}] = true
		}
	case recordWatchdog:
		a.watchedAt = r.At
		a.watchdog, err = decode[watchdogRecord](r.line)
	case recordExit:
		a.exit, err = decode[exitRecord](r.line)
	case recordNeighbour:
		var n *neighbourRecord
		if n, err = decode[neighbourRecord](r.line); err == nil {
			a.beside.add(n)
		}
	case recordProbe:
		a.probes++
	case recordEnd:
		a.end, err = decode[endRecord](r.line)
	case recordProcess, recordKernel, recordSentinel:
		// What they mean for the verdict stands in findings.
	default:
		err = fmt.Errorf("record %d: unknown kind %q", r.Seq, r.Kind)
	}
	return err
}

// takeRequest counts one request. Its findings decide first: a clean one that
// comes after a fault was in flight then, and says nothing.
func (a *arm) takeRequest(at time.Time, r *requestRecord) {
	q := &a.requests
	if r.Outcome == outcomeCensored {
		q.censored++
		return
	}
	bad, known, nan, shown := a.faulted[r.ID], a.toFault != nil, false, false
	for _, f := range r.Findings {
		if a.found(at, f, &r.ID, r.Slot) {
			bad = true
		}
		if f.Grade == detect.Warning {
			q.warn(f.Face)
		}
		shown = shown || f.Grade == detect.Fault
		nan = nan || f.Face == detect.NaN || f.Face == detect.NaNWire
	}
	if known && !bad {
		q.censored++
		return
	}
	q.count(r, bad)
	if r.Outcome == outcomeAnswered && !bad && !shown {
		q.ok++
	}
	if nan {
		q.nan++
	}
	if bad {
		a.blame(r.ID, r.Slot)
	}
}

// count adds a request that ended by itself.
func (q *armRequests) count(r *requestRecord, bad bool) {
	kind := sightOf(r)
	q.ended++
	q.predicted += r.Predicted
	q.observed += r.Observed
	q.prompt, q.answer = max(q.prompt, r.PromptTarget), max(q.answer, r.Predicted)
	if r.Outcome == outcomeAnswered {
		q.answered++
		if r.Status != http.StatusOK && r.Status != 0 {
			q.httpErrors++
		}
		if r.ProbsAsked && r.Observed == 0 && r.Predicted > 0 {
			q.notSeen++
		}
		q.alike.add(r)
		q.latency.Record(r.EndUS - r.IntendedUS)
	}
	q.all.one(kind, bad)
	stratum(q.bins, r.PromptTarget).one(kind, bad)
	if r.Slot < 0 {
		return
	}
	stratum(q.slots, r.Slot).one(kind, bad)
	if before, served := q.first[r.Slot]; (!served && len(q.first) < mostStrata) || served && r.StartUS < before.start {
		q.first[r.Slot] = firstTask{r.StartUS, kind, bad}
	}
}

func (c *chances) one(kind sight, bad bool) {
	if bad {
		c.faulted++
	} else {
		c.clean[kind]++
	}
}

// stratum gives the counts of one length or slot.
func stratum(of map[int]*chances, key int) *chances {
	c := of[key]
	if c == nil {
		c = &chances{}
		if len(of) < mostStrata {
			of[key] = c
		}
	}
	return c
}

func (q *armRequests) warn(what string) {
	if _, known := q.warned[what]; known || len(q.warned) < mostStrata {
		q.warned[what]++
	}
}
