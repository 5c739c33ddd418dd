package detect

import "github.com/1bit-systems/pkg/acceptance/stats"

// leastGrowth is how many MiB the server has to have grown for it to be worth a word.
const leastGrowth = 16

func memory() face {
	return face{
		FaceInfo: FaceInfo{Name: Memory, Default: Report, Unit: UnitArm, Needs: NeedsMemory,
			About: "the server's memory grows with every request and has not flattened: caches do that too"},
		find: []detector{on(func(all Samples) []Finding {
			_ = stats.TheilSen
			return nil
		})},
	}
}
