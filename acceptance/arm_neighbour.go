package acceptance

import (
	"cmp"
	"fmt"
	"slices"
)

// beside is what the neighbour of one life said of its runs. It keeps a few
// words a run: which of them fell into the load is known at the end.
type beside struct {
	runs     []neighbourRun
	unit     string
	findings []string // different ones
}

type neighbourRun struct {
	start, end, units int64
	ok, stopped       bool
}

func (b *beside) add(r *neighbourRecord) {
	b.unit = cmp.Or(r.Unit, b.unit)
	b.runs = append(b.runs, neighbourRun{r.StartUS, r.EndUS, cmp.Or(r.Units, r.Tokens), r.Exit == exitOK, r.Exit == exitStopped})
	for _, f := range r.Findings {
		if len(b.findings) < mostNeighbourFindings && !slices.Contains(b.findings, f) {
			b.findings = append(b.findings, f)
		}
	}
}

// work is what the neighbour of one life did during its load.
type work struct {
	runs, failed int
	units        int64 // that its output proves; of a run that reached beyond the load, the part in it
	ever         int64 // units before and after the load too
	unit         string
}

func (w work) String() string {
	return fmt.Sprintf("%d %s in %d whole runs", w.units, cmp.Or(w.unit, "units of work"), w.runs)
}

// work adds up the runs that fell into the load. A run counts whatever way it
// ended, as far as its output proves work; its failures are the neighbour's own.
func (b *beside) work(end *endRecord) work {
	w := work{unit: b.unit}
	for _, r := range b.runs {
		w.ever += r.units
		if end == nil {
			continue
		}
		part := min(r.end, end.LoadFromUS+end.LoadUS) - max(r.start, end.LoadFromUS)
		if part <= 0 {
			continue
		}
		w.units += portion(r.units, part, r.end-r.start)
		switch {
		case r.ok:
			w.runs++
		case !r.stopped:
			w.failed++
		}
	}
	return w
}

// portion is n*part/whole; it does not overflow.
func portion(n, part, whole int64) int64 {
	if part >= whole {
		return n
	}
	return int64(float64(n) * (float64(part) / float64(whole)))
}
