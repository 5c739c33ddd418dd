package acceptance

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/stats"
)

// rowTally is one condition of the plan.
type rowTally struct {
	*pair
	arm      Arm
	states   ArmCounts
	build    string
	parallel int
}

func (r *rowTally) add(a *arm, s ArmState) {
	r.states.add(s)
	r.build = cmp.Or(r.build, strings.TrimSpace(a.start.Package+" "+a.start.EngineVersion))
	r.parallel = a.plan.Server.Parallel
}

// row gives the columns of the reports that this replaces.
func (r *rowTally) row(j *judging) ArmRow {
	t := r.shown()
	row := ArmRow{
		Name: r.arm.Name, Role: r.arm.Role, Build: r.build, Parallel: r.parallel, Neighbour: t.proof(),
		Lives: r.counted.lives, Requests: t.ended, OK: t.ok, NaN: t.nan, GuardLines: t.guardLines, HTTPErrors: t.httpErrors,
		Restarts: t.restarts, SlotsUsed: t.slotsUsed, NeverUsedSlots: t.shape.NeverUsed,
		Selected: Selected{t.shape.LRU, t.shape.LCP, t.shape.ByID}, BusyShare: t.shape.busyShare(), MedianMS: t.latencies().P50,
		GTTBeforeGiB: t.host.before, GTTAfterGiB: t.host.after, States: r.states,
	}
	b := r.counted.bounds(j.plan, j.faces)
	row.ArmUpper95, row.RequestUpper95 = b.ArmUpper95, b.RequestUpper95
	return row
}

// proof says what the neighbour was and what it did.
func (t *tally) proof() string {
	n := t.beside
	if n == nil {
		return "none"
	}
	return fmt.Sprintf("%s, %d %s", n.Kind, n.Units, cmp.Or(n.Unit, "units"))
}

func (r *rowTally) exposure() ArmExposure {
	t := r.shown()
	x := t.exposure()
	return ArmExposure{
		Name: r.arm.Name, Role: r.arm.Role, Lives: r.counted.lives, LoadSeconds: x.LoadSeconds,
		RequestsPerSecond: x.RequestsPerSecond, AllSlotsBusyShare: x.AllSlotsBusyShare, LaunchesPerSlot: x.LaunchesPerSlot,
		Selected: x.Selected, NeverUsedSlots: x.NeverUsedSlots, Neighbour: x.Neighbour, LatencyMS: x.LatencyMS,
		EvictedMS: x.EvictedMS, PeakGTTGiB: x.PeakGTTGiB, ServerMiB: t.host.server,
	}
}

// faceTally is what the run showed of one face.
type faceTally struct {
	seen    int // findings, in all lives
	counted int // faults among them, in candidate lives that count
	lives   int // of those, lives that had any
	first   time.Time
	excerpt string
}

func (f *faceTally) add(t *trace, s ArmState, grade detect.Grade) {
	f.seen += t.seen
	if f.first.IsZero() || t.first.Before(f.first) {
		f.first, f.excerpt = t.first, cmp.Or(t.excerpt, t.detail)
	}
	if grade == detect.Fault && s.Counts && s.Role == RoleCandidate {
		f.counted += t.seen
		f.lives++
	}
}

// faceRows is the table of all faces.
func (j *judging) faceRows() []FaceRow {
	t := j.groups[RoleCandidate].counted
	rows := []FaceRow{}
	for i, f := range j.faces.infos {
		seen := j.table[i]
		row := FaceRow{Face: f.Name, Setting: string(j.faces.settings[i]), Unit: f.Unit, Seen: seen.seen, Excerpt: seen.excerpt}
		if !seen.first.IsZero() {
			row.First = &seen.first
		}
		k := 0
		if f.Unit == detect.UnitRequest {
			row.N, k = t.all.of(j.faces, i), seen.counted
			if f.Name == detect.Corruption {
				row.N += t.probes
			}
		} else {
			row.N, k = t.chancesOfLife(f), seen.lives
		}
		if j.unseen(f) != "" {
			row.N = 0
		}
		if row.N == 0 {
			row.N = k // what was seen on the quiet server, before any request
		}
		row.Upper95 = stats.UpperBound(float64(k), float64(row.N), 0.05)
		rows = append(rows, row)
	}
	return rows
}

// chancesOfLife is in how many lives a face could have shown.
func (t *tally) chancesOfLife(f detect.FaceInfo) int {
	switch f.Needs {
	case detect.NeedsKernelLog:
		return t.kernels
	case detect.NeedsMemory:
		return t.memories
	}
	return t.lives
}

// unseen says why nothing in this run could have shown a face; "" if something
// could.
func (j *judging) unseen(f detect.FaceInfo) string {
	t := j.groups[RoleCandidate].counted
	switch {
	case j.faces.setting(f.Name) == detect.Off:
		return "the plan turns it off"
	case f.Needs == detect.NeedsSentinels && j.plan.Sentinels.Every == 0 && (f.Name != detect.Corruption || t.probes == 0):
		return "the plan has no sentinels"
	case f.Needs == detect.NeedsPlacement && j.plan.Device.Name == "" && j.plan.Device.Layers == "":
		return "the plan names no device"
	case f.Needs == detect.NeedsKernelLog && t.kernels == 0:
		return "the kernel's log was not read"
	case f.Needs == detect.NeedsMemory && t.memories == 0:
		return "the server's memory was not watched"
	}
	return ""
}
