package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// past is what the ledger of a run tells a runner that goes on.
type past struct {
	open      openRecord
	processes []processRecord // of the life that was not ended
	starts    []startRecord
	requests  []int // of each life
	offsets   []int64
	size      int64

	told   *LedgerHead // by the verdict of a run that went this far; nil: there was none
	found  bool        // the record that it names as the last
	faults map[faultyRequest]bool
}

// faultyRequest is a request of a life that the ledger has a fault of, or a sentinel on
// the quiet server.
type faultyRequest struct{ arm, request int }

const quietSentinel = -1

// newPast prepares to read the ledger of an evidence folder.
func newPast(dir string) (*past, error) {
	p := &past{faults: map[faultyRequest]bool{}}
	raw, err := os.ReadFile(filepath.Join(dir, VerdictName))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	var v struct{ Ledger LedgerHead }
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("read the verdict so far: %w", err)
	}
	p.told = &v.Ledger
	return p, nil
}

// take takes one record.
func (p *past) take(r *record) error {
	at := p.size
	p.size += r.size
	if p.told != nil && p.told.Records == r.Seq {
		p.found = p.told.Head == string(r.sum)
	}
	var err error
	switch r.Kind {
	case recordOpen:
		err = json.Unmarshal(r.Data, &p.open)
	case recordStart:
		var s *startRecord
		if s, err = decode[startRecord](r.line); err == nil {
			p.starts, p.requests, p.offsets = append(p.starts, *s), append(p.requests, 0), append(p.offsets, at)
			p.processes = nil
		}
	case recordProcess:
		var q *processRecord
		if q, err = decode[processRecord](r.line); err == nil {
			p.processes = append(p.processes, *q)
		}
	case recordEnd:
		p.processes = nil
	case recordRequest:
		if n := len(p.requests); n > 0 {
			p.requests[n-1]++
			if r.request != nil {
				p.faulty(r.request.ID, r.request.Findings...)
			}
		}
	case recordFinding:
		var f *findingRecord
		if f, err = decode[findingRecord](r.line); err == nil {
			p.faulty(quietSentinel, f.Finding)
		}
	}
	return err
}

func (p *past) faulty(request int, findings ...detect.Finding) {
	if p.faults == nil { // who only watches has no use for it
		return
	}
	for _, f := range findings {
		if f.Grade != detect.Warning {
			p.faults[faultyRequest{len(p.starts), request}] = true
		}
	}
}

// isOf looks whether ledger and plan belong together.
func (p *past) isOf(dir string, plan *Plan) error {
	resolved, err := readInput(filepath.Join(dir, ResolvedName))
	if err != nil {
		return err
	}
	if p.open.PlanFileSHA256 != plan.FileSHA256() || p.open.PlanSHA256 != sumOf(resolved) {
		return fmt.Errorf("%w: %s or %s is not the one that the ledger names", ErrChanged, PlanName, ResolvedName)
	}
	return nil
}

// isWhole looks whether the ledger still tells of all that lies in the evidence
// folder. Its lines are chained to the ones before, so nothing else shows that
// there were more of them: whoever cuts them off would have a run go on as if a
// fault had never been. A life's record is on the disk before its folder is, and
// a fault's before the answer that it was seen in.
func (p *past) isWhole(dir string) error {
	cut := func(format string, args ...any) error {
		return fmt.Errorf("%w: the ledger has lost its end: %s", ErrLedger, fmt.Sprintf(format, args...))
	}
	if p.told != nil && (p.told.Closed || !p.found) {
		return cut("%s is of its first %d records, of which the last is missing", VerdictName, p.told.Records)
	}
	arms, err := os.ReadDir(filepath.Join(dir, ArmsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the lives so far: %w", err)
	}
	for _, arm := range arms {
		n, err := strconv.Atoi(arm.Name())
		if err != nil {
			continue
		}
		if n > len(p.starts) {
			return cut("it has %d lives, and there is a folder of life %d", len(p.starts), n)
		}
		bodies, err := os.ReadDir(filepath.Join(ArmDir(dir, n), FaultsDir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look at the lives so far: %w", err)
		}
		for _, body := range bodies {
			request := quietSentinel
			if id, ok := strings.CutPrefix(body.Name(), "request-"); ok {
				if request, err = strconv.Atoi(strings.TrimSuffix(id, ".body")); err != nil {
					continue
				}
			}
			if !p.faults[faultyRequest{n, request}] {
				return cut("it has no fault for %s of life %d", body.Name(), n)
			}
		}
	}
	return nil
}

// judge judges the lives so far.
func (p *past) judge(w *walk) error {
	for i, start := range p.starts {
		planned, ok := w.planned(start)
		if !ok {
			return fmt.Errorf("%w: the ledger has a life of arm %s that the plan does not have", ErrChanged, start.Name)
		}
		to := p.size
		if i+1 < len(p.offsets) {
			to = p.offsets[i+1]
		}
		state, err := judgeLife(w.plan.of(planned), w.faces, filepath.Join(w.o.Evidence, LedgerName), p.offsets[i], to)
		if err != nil {
			return err
		}
		w.past = append(w.past, attempt{start, state})
		w.tracker.inherit(planned.Load, state, p.requests[i])
	}
	return nil
}
