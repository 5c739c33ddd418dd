package detect

import "github.com/1bit-systems/pkg/engine"

func format() face {
	return face{
		FaceInfo: FaceInfo{Name: Format, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "the server cannot parse what its own model put out"},
		sees: answered,
		find: []detector{on(func(x *Exchange) []Finding {
			f, bad := x.fault(anyStatus, engine.FaceFormat)
			if !bad {
				return nil
			}
			return one(Fault, quote(x.Answer.Raw), "%s", f.Detail)
		})},
	}
}
