package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// A History is what happened in a run, in the order of time: what a verdict
// counts, as somebody would draw it.
type History struct {
	From, To   time.Time // of the first and the last record
	P0         float64   // rate that the plan wants excluded; 0: it only reports
	Lives      []LifeSpan
	Answers    []AnswerAt
	Findings   []FindingAt // of very many one a second for each face: the verdict has their number
	Samples    []SampleAt
	Neighbours []NeighbourWork // by kind
	Identities []NamedDigest

	gates  map[string]bool      // faces that the plan lets decide
	latest map[string]time.Time // the last finding of a face that is in Findings
}

// A LifeSpan is one server life.
type LifeSpan struct {
	Arm      int
	Name     string
	From, To time.Time
}

// An AnswerAt is one request that ended by itself. There may be millions: it is
// as exact as a picture needs.
type AnswerAt struct {
	Seconds float32 // since History.From
	MS      float32 // from its intended start
}

// A FindingAt is one face that was seen.
type FindingAt struct {
	At     time.Time
	Arm    int
	Face   string
	Fault  bool // it decides; else it is only reported
	Detail string
}

// A SampleAt is the state of host and server at one moment; nil: no sensor.
type SampleAt struct {
	Arm             int       `json:"-"`
	At              time.Time `json:"at"`
	MemAvailableGiB *float64  `json:"mem_available_gib"`
	GTTUsedGiB      *float64  `json:"gtt_used_gib"`
	ServerMiB       *float64  `json:"server_mib"`
	TempC           *float64  `json:"temp_c"`
}

// NeighbourWork is what the neighbours of one kind did, in all arms.
type NeighbourWork struct {
	Kind         string
	Runs, Failed int
	Work         map[string]int64 // by unit
	Alive        time.Duration
	Findings     []string // different ones
}

// A NamedDigest says which bytes stood behind a name.
type NamedDigest struct{ What, Name, Digest string }

// ReadHistory reads what happened from an evidence folder. It reads as much as
// the ledger's chain vouches for; whether that is all is the verdict's matter.
// A request takes some ten bytes.
func ReadHistory(dir string) (*History, error) {
	planFile, err := readInput(filepath.Join(dir, PlanName))
	if err != nil {
		return nil, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	p, err := ParsePlan(planFile)
	if err != nil {
		return nil, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	ledger, err := openInput(filepath.Join(dir, LedgerName))
	if err != nil {
		return nil, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	defer ledger.Close()
	h := &History{P0: p.P0, gates: map[string]bool{}, latest: map[string]time.Time{}}
	faces := newFaceTable(p)
	for i, f := range faces.infos {
		h.gates[f.Name] = faces.settings[i] == detect.Gate
	}
	if _, err := scanLedger(ledger, func(r *record) error { return h.take(r.line) }); err != nil {
		return nil, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	if h.Identities, err = readIdentities(filepath.Join(dir, ResolvedName)); err != nil {
		return nil, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	for _, life := range h.Lives {
		if err := h.readSamples(life.Arm, filepath.Join(dir, ArmsDir, fmt.Sprintf("%04d", life.Arm), SamplesName)); err != nil {
			return nil, fmt.Errorf("read the run in %s: %w", dir, err)
		}
	}
	return h, nil
}

// take adds one record.
func (h *History) take(l line) error {
	if h.From.IsZero() {
		h.From = l.At
	}
	h.To = l.At
	if l.Kind == recordStart {
		s, err := decode[startRecord](l)
		if err != nil {
			return err
		}
		h.Lives = append(h.Lives, LifeSpan{Arm: s.Arm, Name: s.Name, From: l.At})
	}
	if len(h.Lives) == 0 {
		return nil
	}
	life := &h.Lives[len(h.Lives)-1]
	life.To = l.At
	switch l.Kind {
	case recordRequest:
		r, err := decode[requestRecord](l)
		if err != nil {
			return err
		}
		if r.Outcome != outcomeCensored {
			h.Answers = append(h.Answers, AnswerAt{Seconds: float32(l.At.Sub(h.From).Seconds()), MS: float32(r.EndUS-r.IntendedUS) / 1000})
		}
		for _, f := range r.Findings {
			h.found(l.At, life.Arm, f)
		}
	case recordFinding:
		f, err := decode[findingRecord](l)
		if err != nil {
			return err
		}
		h.found(l.At, life.Arm, f.Finding)
	case recordNeighbour:
		r, err := decode[neighbourRecord](l)
		if err != nil {
			return err
		}
		h.worked(r)
	}
	return nil
}

// manyFindings is how many are kept as they come.
const manyFindings = 10_000

func (h *History) found(at time.Time, arm int, f detect.Finding) {
	fault := f.Grade == detect.Fault && h.gates[f.Face]
	if last, known := h.latest[f.Face]; known && !fault && len(h.Findings) >= manyFindings && at.Sub(last) < time.Second {
		return
	}
	h.latest[f.Face] = at
	h.Findings = append(h.Findings, FindingAt{At: at, Arm: arm, Face: f.Face, Fault: fault, Detail: f.Detail})
}

func (h *History) worked(r *neighbourRecord) {
	i := slices.IndexFunc(h.Neighbours, func(n NeighbourWork) bool { return n.Kind == r.Kind })
	if i < 0 {
		i = len(h.Neighbours)
		h.Neighbours = append(h.Neighbours, NeighbourWork{Kind: r.Kind, Work: map[string]int64{}})
	}
	n := &h.Neighbours[i]
	n.Runs++
	if r.Exit != exitOK && r.Exit != exitStopped {
		n.Failed++
	}
	if r.Units > 0 {
		n.Work[r.Unit] += r.Units
	}
	n.Alive += time.Duration(r.EndUS-r.StartUS) * time.Microsecond
	for _, f := range r.Findings {
		if len(n.Findings) < mostNeighbourFindings && !slices.Contains(n.Findings, f) {
			n.Findings = append(n.Findings, f)
		}
	}
}

const mostNeighbourFindings = 20

// readSamples reads the samples of one life. A torn last line is passed over;
// a life that ended early may have none.
func (h *History) readSamples(arm int, path string) error {
	raw, err := readInput(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		s := SampleAt{Arm: arm}
		if json.Unmarshal(lines.Bytes(), &s) == nil && !s.At.IsZero() {
			h.Samples = append(h.Samples, s)
		}
	}
	return nil
}

// readIdentities finds everything in the resolved plan that has a digest.
func readIdentities(path string) ([]NamedDigest, error) {
	raw, err := readInput(path)
	if err != nil {
		return nil, err
	}
	var top any
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, fmt.Errorf("read %s: %w", ResolvedName, err)
	}
	var list []NamedDigest
	collectDigests(nil, top, &list)
	return list, nil
}

func collectDigests(path []string, v any, list *[]NamedDigest) {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		if digest, ok := v["digest"].(string); ok {
			*list = append(*list, NamedDigest{strings.ReplaceAll(strings.Join(path, " "), "_", " "), name, digest})
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			collectDigests(append(slices.Clone(path), key), v[key], list)
		}
	case []any:
		for _, element := range v {
			collectDigests(path, element, list)
		}
	}
}
