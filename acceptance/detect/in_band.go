package detect

import (
	"net/http"

	"github.com/1bit-systems/pkg/engine"
)

func inBand() face {
	return face{
		FaceInfo: FaceInfo{Name: InBand, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "an error inside an answer with status 200"},
		sees: answered200,
		find: []detector{on(func(x *Exchange) []Finding {
			f, bad := x.fault(func(s int) bool { return s == http.StatusOK }, engine.FaceStatus, engine.FaceLoading)
			if !bad {
				return nil
			}
			return one(Fault, quote(x.Answer.Raw), "%s", f.Detail)
		})},
	}
}
