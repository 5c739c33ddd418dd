package detect

import "github.com/1bit-systems/pkg/engine"

func nan() face {
	return face{
		FaceInfo: FaceInfo{Name: NaN, Default: Gate, Gates: true, Unit: UnitRequest, Needs: NeedsLog,
			About: "the engine's guard, or its abort, says in the log that logits were NaN"},
		sees: ended,
		find: []detector{on(func(ev engine.LogEvent) []Finding {
			switch {
			case ev.Kind == engine.LogNaN:
				return one(Fault, quote([]byte(ev.Detail)), "guard line in the log: %s", quote([]byte(ev.Detail)))
			case ev.Kind == engine.LogAbort && ev.NaNAbort:
				// The log has a writer of its own, so an abort may swallow the guard's line.
				return one(Fault, quote([]byte(ev.Detail)), "aborted for NaN: %s", quote([]byte(ev.Detail)))
			}
			return nil
		})},
	}
}
