package detect

import "github.com/1bit-systems/pkg/engine"

func notObserved() face {
	return face{
		FaceInfo: FaceInfo{Name: NotObserved, Default: Report, Unit: UnitRequest, Needs: NeedsProbs,
			About: "an answer without the log-probabilities it was asked for shows nothing, good or bad"},
		sees: asked,
		find: []detector{on(func(x *Exchange) []Finding {
			f, blind := x.fault(anyStatus, engine.FaceNotObserved)
			if !blind {
				return nil
			}
			return one(Warning, "", "%s", f.Detail)
		})},
	}
}
