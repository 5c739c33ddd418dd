package detect

import (
	"math"

	"github.com/1bit-systems/pkg/acceptance/stats"
)

// What makes growth worth a word.
const (
	warmUpShare   = 5   // the first fifth of the requests fills caches and is left out
	leastGrowth   = 16  // MiB over the rest
	leastZ        = 2.0 // standard deviations of Mann-Kendall's test
	stillGrowing  = 0.5 // the last third's slope as a part of the whole one: below, it has flattened
	mostSamples   = 500 // the slope takes time by the square
	fewestSamples = 12
)

func memory() face {
	return face{
		FaceInfo: FaceInfo{Name: Memory, Default: Report, Unit: UnitArm, Needs: NeedsMemory,
			About: "the server's memory grows with every request and has not flattened, which caches do too"},
		find: []detector{on(func(all Samples) []Finding {
			x, y, ok := settled(all)
			if !ok {
				return nil
			}
			slope := stats.TheilSen(x, y)
			growth := slope * (x[len(x)-1] - x[0])
			last := stats.TheilSen(x[2*len(x)/3:], y[2*len(y)/3:])
			if !(growth >= leastGrowth) || !(stats.MannKendall(y).Z >= leastZ) || !(last >= stillGrowing*slope) {
				return nil
			}
			return one(Warning, "", "the server grows by %.3g MiB a request and has not flattened: %.0f MiB more in %.0f requests, %.0f in the end",
				slope, growth, x[len(x)-1]-x[0], y[len(y)-1])
		})},
	}
}

// GrowthPerRequest is the median growth of the server in MiB a request, after its warm-up. It is NaN where there are too
// few samples to tell.
func GrowthPerRequest(samples []Sample) float64 {
	x, y, ok := settled(samples)
	if !ok {
		return math.NaN()
	}
	return stats.TheilSen(x, y)
}

// settled gives requests and MiB after the warm-up. ok is false if there are too few.
func settled(all Samples) (x, y []float64, ok bool) {
	kept := thin(afterWarmUp(all), mostSamples)
	for _, s := range kept {
		x, y = append(x, float64(s.Requests)), append(y, s.MiB)
	}
	return x, y, len(kept) >= fewestSamples
}

// afterWarmUp leaves out the samples of the first requests, and those that are no number.
func afterWarmUp(all Samples) Samples {
	if len(all) == 0 {
		return nil
	}
	first, last := all[0].Requests, all[len(all)-1].Requests
	var kept Samples
	for _, s := range all {
		if s.Requests >= first+(last-first)/warmUpShare && !math.IsNaN(s.MiB) && !math.IsInf(s.MiB, 0) {
			kept = append(kept, s)
		}
	}
	return kept
}

// thin keeps at most n samples, evenly.
func thin(all Samples, n int) Samples {
	if len(all) <= n {
		return all
	}
	kept := make(Samples, n)
	for i := range kept {
		kept[i] = all[i*(len(all)-1)/(n-1)]
	}
	return kept
}
