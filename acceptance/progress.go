package acceptance

import (
	"fmt"
	"time"
)

// Progress is the state of a run, a few times a second.
type Progress struct {
	Phase             string // starting, neighbour, load, ending
	Done              int64  // requests, or seconds of a plan that runs for a time
	Total             int64
	Requests          int // that ended
	Faults            int
	BusyShare         float64 // of the busy time, all slots busy
	RequestsPerSecond float64
	Elapsed           time.Duration
}

// String says it in one short line.
func (p Progress) String() string {
	if p.Phase != phaseLoad {
		return p.Phase
	}
	return fmt.Sprintf("%d requests, %d faults, all slots busy %.0f %%, %.1f/s, %s",
		p.Requests, p.Faults, 100*p.BusyShare, p.RequestsPerSecond, p.Elapsed.Round(time.Second))
}

// Phases of a run.
const (
	phaseStart     = "starting the server"
	phaseNeighbour = "waiting for the neighbour"
	phaseLoad      = "load"
	phaseEnd       = "ending"
)
