package detect

import "github.com/1bit-systems/pkg/engine"

func contextFull() face {
	return face{
		FaceInfo: FaceInfo{Name: Context, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "what was asked for does not fit the context that the slots share: the plan's doing, not the engine's"},
		sees: ended,
		find: []detector{on(func(x *Exchange) []Finding {
			f, full := x.fault(anyStatus, engine.FaceContext)
			if !full {
				return nil
			}
			return one(Invalid, quote(x.Answer.Raw), "%s", f.Detail)
		})},
	}
}
