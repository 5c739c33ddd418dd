package neighbour

// A Summary is what a neighbour did between two moments.
type Summary struct {
	Kind     string   `json:"kind"`
	Unit     string   `json:"unit"`
	Runs     int      `json:"runs"`               // that proved work in this time, also if they began before or go on
	Units    int64    `json:"units"`              // of work that was proven in this time
	Failed   int      `json:"failed"`             // runs that failed and were alive in this time
	Findings []string `json:"findings,omitempty"` // of the runs that were alive in this time, each once
	Died     string   `json:"died,omitempty"`     // why it was given up
	AliveUS  int64    `json:"alive_us"`           // for how long a program of it ran
}

// Summary says what it did between two moments of the clock.
func (n *Neighbour) Summary(from, to int64) Summary {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := Summary{Kind: n.options.Kind, Unit: n.unit, Died: n.why}
	var before, last int64
	run := 0
	for _, t := range n.steps {
		switch {
		case t.us <= from:
			before, last = t.units, t.units
		case t.us <= to:
			if t.run != run {
				run, s.Runs = t.run, s.Runs+1
			}
			last = t.units
		}
	}
	s.Units = last - before
	told := map[string]bool{}
	for _, e := range n.ended {
		if e.to <= from || e.from >= to {
			continue
		}
		s.AliveUS += min(e.to, to) - max(e.from, from)
		if e.failed {
			s.Failed++
		}
		for _, f := range e.findings {
			if !told[f] && len(s.Findings) < maxFindings {
				told[f], s.Findings = true, append(s.Findings, f)
			}
		}
	}
	if n.since >= 0 && n.since < to {
		s.AliveUS += max(0, min(n.options.Now(), to)-max(n.since, from))
	}
	return s
}
