package detect

import "github.com/1bit-systems/pkg/engine"

func transport() face {
	return face{
		FaceInfo: FaceInfo{Name: Transport, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "a connection that gave no answer, or a part of one"},
		sees: ended,
		find: []detector{on(func(x *Exchange) []Finding {
			if f, cut := x.fault(anyStatus, engine.FaceTransport); cut {
				return one(Fault, quote(x.Answer.Raw), "%s", f.Detail)
			}
			if x.request().Outcome != NoAnswer {
				return nil
			}
			return one(Fault, "", "%v", x.why())
		})},
	}
}
