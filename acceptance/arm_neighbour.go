package acceptance

import (
	"cmp"
	"fmt"
	"slices"
)

// beside is what the neighbour of one life said of its runs, in and out of the
// load.
type beside struct {
	ever     int64 // units of all of them
	unit     string
	findings []string // different ones
}

func (b *beside) add(r *neighbourRecord) {
	b.unit = cmp.Or(r.Unit, b.unit)
	b.ever += cmp.Or(r.Units, r.Tokens)
	for _, f := range r.Findings {
		if len(b.findings) < mostNeighbourFindings && !slices.Contains(b.findings, f) {
			b.findings = append(b.findings, f)
		}
	}
}

// beside is what the neighbour proved during the load. A run counts whatever way
// it ended, as far as its output proves work; its failures are the neighbour's
// own.
func (e *endRecord) beside() neighbourSummary {
	if e == nil || e.Neighbour == nil {
		return neighbourSummary{}
	}
	return *e.Neighbour
}

func (s neighbourSummary) String() string {
	return fmt.Sprintf("%d %s in %d runs", s.Units, cmp.Or(s.Unit, "units of work"), s.Runs)
}
