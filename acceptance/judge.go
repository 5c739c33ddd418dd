package acceptance

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// Names in an evidence folder.
const (
	PlanName       = "plan.yaml"     // the plan's file, byte for byte
	ResolvedName   = "plan.json"     // the resolved plan; its SHA-256 is plan_sha256
	ServerLogName  = "server.log"    // output of the server
	NeighbourLog   = "neighbour.log" // standard error of the neighbour
	NeighbourRows  = "neighbour.jsonl"
	SamplesName    = "samples.jsonl"
	HostBeforeName = "host-before.json"
	HostAfterName  = "host-after.json"
	VerdictName    = "verdict.json"
	FaultsDir      = "faults" // raw bodies of the answers that had a fault
)

// JudgeDir judges the run in an evidence folder, from its plan and ledger
// alone: nothing else in the folder and nothing of this host matters, and the
// same bytes always give the same verdict. A ledger that is incomplete, torn
// or changed gives an inconclusive verdict, unless what is intact of it holds a
// fault. A ledger that still grows is judged as far as it goes. The error is for
// a folder without a readable run.
func JudgeDir(dir string) (*Verdict, error) {
	var parts [2][]byte
	for i, name := range []string{PlanName, ResolvedName} {
		var err error
		if parts[i], err = readInput(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("judge %s: it is not the evidence of a run: %w", dir, err)
		}
	}
	f, err := openInput(filepath.Join(dir, LedgerName))
	if err != nil {
		return nil, fmt.Errorf("judge %s: it is not the evidence of a run: %w", dir, err)
	}
	defer f.Close()
	v, err := judge(parts[0], parts[1], f)
	if err != nil {
		return nil, fmt.Errorf("judge %s: %w", dir, err)
	}
	return v, nil
}

// judge is the whole verdict function. It reads the ledger once, as a stream,
// and what it remembers grows with the number of lives, not of requests.
func judge(planFile, resolved []byte, ledger io.Reader) (*Verdict, error) {
	p, err := ParsePlan(planFile)
	if err != nil {
		return nil, err
	}
	j := newJudging(p, p.FileSHA256(), sumOf(resolved))
	s, err := scanLedger(ledger, j.take)
	if err != nil && !errors.Is(err, errSenseless) {
		return nil, err
	}
	if err != nil {
		j.damage = err.Error()
	}
	return j.verdict(s), nil
}

// errSenseless says that a record makes no sense where it stands. What comes
// after it is not looked at.
var errSenseless = errors.New("a record makes no sense")

// judging is a verdict in the making.
type judging struct {
	plan          *Plan
	faces         *faceTable
	lives         map[lifeKey]PlannedLife
	planFile      string // digests
	resolved      string
	open          openRecord
	before, after *HostFacts
	records       int
	resumed       int
	damage        string
	notes         []string
	remarks       []remark
	outside       map[string]bool // programs that served and are not of their package

	arm    *arm // the life that goes on; nil before the first
	states []ArmState
	done   map[lifeKey]ArmState // what there is as evidence of each planned life
	arms   ArmCounts            // of the package
	tried  map[string]ArmCounts // attempts, by role
	asked  int                  // requests of the package
	faults []Fault
	only   map[string]int // findings of the package's lives that are faults, of faces that the plan only reports
	rows   []*rowTally
	groups map[string]*pair // by role
	table  []faceTally
}

// lifeKey names a planned life: the index of its arm, and which of the arm's
// lives it is.
type lifeKey struct{ arm, life int }

// pair counts lives that are evidence, and all of them.
type pair struct{ counted, all *tally }

func newPair() *pair { return &pair{newTally(), newTally()} }

// shown is what to tell of the load: of the lives that count, if there are any.
func (p *pair) shown() *tally {
	if p.counted.lives > 0 {
		return p.counted
	}
	return p.all
}

func newJudging(p *Plan, planFile, resolved string) *judging {
	j := &judging{
		plan: p, faces: newFaceTable(p), lives: map[lifeKey]PlannedLife{}, planFile: planFile, resolved: resolved,
		outside: map[string]bool{}, done: map[lifeKey]ArmState{}, tried: map[string]ArmCounts{}, only: map[string]int{}, groups: map[string]*pair{},
	}
	for _, role := range []string{RoleCandidate, RoleControl, RoleBaseline} {
		j.groups[role] = newPair()
	}
	for _, l := range p.Lives() {
		j.lives[lifeKey{l.Arm, l.Life}] = l
	}
	for _, a := range p.Arms {
		j.rows = append(j.rows, &rowTally{arm: a, pair: newPair()})
	}
	j.table = make([]faceTally, len(j.faces.infos))
	return j
}

// take adds one record. The error wraps errSenseless.
func (j *judging) take(r *record) error {
	err := j.takeRecord(r)
	if err != nil {
		err = fmt.Errorf("%w: %w", errSenseless, err)
	}
	j.records++
	return err
}

func (j *judging) takeRecord(r *record) error {
	if j.records == 0 {
		return j.begin(r)
	}
	switch r.Kind {
	case recordHost:
		h, err := decode[hostRecord](r.line)
		if err != nil {
			return err
		}
		if h.When == "before" {
			j.before = &h.Host
		} else {
			j.after = &h.Host
		}
		return nil
	case recordResume:
		s, err := decode[resumeRecord](r.line)
		if err != nil {
			return err
		}
		j.endLife()
		j.resumed++
		if s.Note != "" {
			j.notes = append(j.notes, fmt.Sprintf("record %d: the run was resumed: %s", r.Seq, s.Note))
		}
		return nil
	case recordStart:
		s, err := decode[startRecord](r.line)
		if err != nil {
			return err
		}
		return j.startLife(r.Seq, s)
	}
	if j.arm == nil {
		return fmt.Errorf("record %d: %s outside of any life", r.Seq, r.Kind)
	}
	return j.arm.take(r)
}

// begin reads the opening record, which names the plan.
func (j *judging) begin(r *record) error {
	if r.Kind != recordOpen {
		return errors.New("record 1: not an opening record")
	}
	open, err := decode[openRecord](r.line)
	if err != nil {
		return err
	}
	j.open = *open
	switch {
	case open.Schema != ledgerSchema:
		return fmt.Errorf("record 1: schema %d, this program reads %d", open.Schema, ledgerSchema)
	case open.PlanFileSHA256 != j.planFile:
		return errors.New(PlanName + " is not the plan of this ledger")
	case open.PlanSHA256 != j.resolved:
		return errors.New(ResolvedName + " is not the resolved plan of this ledger")
	}
	return nil
}

// ledgerSchema is the version of the records.
const ledgerSchema = 2

// startLife begins the next life, which ends the one before.
func (j *judging) startLife(seq int, s *startRecord) error {
	j.endLife()
	planned, known := j.lives[lifeKey{s.Planned, s.Life}]
	if !known {
		return fmt.Errorf("record %d: the plan has no life %d of arm %d (%s)", seq, s.Life, s.Planned, s.Name)
	}
	s.Name, s.Role = planned.Name, planned.Role
	j.arm = newArm(j.plan.of(planned), j.faces, *s)
	return nil
}

// endLife judges the life that has ended, and counts it.
func (j *judging) endLife() {
	a := j.arm
	if a == nil {
		return
	}
	j.arm = nil
	if a.end != nil && len(a.end.Escaped) > 0 {
		j.notes = append(j.notes, fmt.Sprintf("arm %d: ended what had left its process group: %s", a.start.Arm, strings.Join(a.end.Escaped, ", ")))
	}
	j.remark(a)
	s := a.classify()
	key := lifeKey{a.start.Planned, a.start.Life}
	s.Counts = j.counts(key, &s)
	j.states = append(j.states, s)
	tried := j.tried[s.Role]
	tried.add(s)
	j.tried[s.Role] = tried
	if s.Role != RoleBaseline {
		j.arms.add(s)
		j.asked += s.Requests
	}
	for _, into := range []*pair{j.groups[s.Role], j.rows[key.arm].pair} {
		into.all.add(a, s)
		if s.Counts {
			into.counted.add(a, s)
		}
	}
	j.rows[key.arm].add(a, s)
	j.tell(a, s)
}

// counts decides whether a life is evidence about the rate. Only what was no
// evidence may be lived again: the first that is stands, and a plan's number of
// lives is never extended.
func (j *judging) counts(key lifeKey, s *ArmState) bool {
	if before, lived := j.done[key]; lived && (before.State == stateClean || before.State == stateFault) {
		j.notes = append(j.notes, fmt.Sprintf("arm %d does not count: arm %d was evidence of the same life already", s.Arm, before.Arm))
		return false
	}
	j.done[key] = *s
	return s.evidence() && (s.Role != RoleCandidate || j.plan.countsTowardsN(j.lives[key]))
}

// countsTowardsN tells whether a life is one of those that N asks for: a
// candidate's, beside a neighbour where any candidate has one.
func (p *Plan) countsTowardsN(l PlannedLife) bool {
	if l.Role != RoleCandidate {
		return false
	}
	if l.Neighbour != nil {
		return true
	}
	for i := range p.Arms {
		if other := p.life(i, 1); other.Role == RoleCandidate && other.Neighbour != nil {
			return false
		}
	}
	return true
}

// tell adds the faults of a life to those of the run.
func (j *judging) tell(a *arm, s ArmState) {
	episode := a.episode()
	if len(episode) > 0 {
		f := a.fault(episode)
		f.Gates, f.OutOfRegime = s.Role != RoleBaseline, s.OutOfRegime
		j.faults = append(j.faults, f)
	}
	j.faults = append(j.faults, a.reported()...)
	for key, t := range a.startTraces() {
		if key.grade == detect.Fault && t.reported && s.Role != RoleBaseline {
			j.only[key.face] += t.seen
		}
		if i, known := j.faces.index[key.face]; known {
			j.table[i].add(t, s, key.grade)
		}
	}
}
