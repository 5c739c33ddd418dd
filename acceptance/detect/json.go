package detect

import "github.com/1bit-systems/pkg/engine"

func jsonBody() face {
	return face{
		FaceInfo: FaceInfo{Name: JSON, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "an answer with status 200 is no JSON, or holds nothing that an answer has"},
		sees: answered200,
		find: []detector{on(func(x *Exchange) []Finding {
			f, bad := x.fault(anyStatus, engine.FaceJSON)
			if !bad {
				return nil
			}
			return one(Fault, quote(x.Answer.Raw), "%s", f.Detail)
		})},
	}
}
