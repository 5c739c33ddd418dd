package detect

import (
	"net/http"

	"github.com/1bit-systems/pkg/engine"
)

func status() face {
	return face{
		FaceInfo: FaceInfo{Name: Status, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "a status other than 200, also 503 for a model that was loaded before"},
		sees: answered,
		find: []detector{on(func(x *Exchange) []Finding {
			f, bad := x.fault(func(s int) bool { return s != http.StatusOK }, engine.FaceStatus, engine.FaceLoading)
			if !bad {
				return nil
			}
			return one(Fault, quote(x.Answer.Raw), "%s", f.Detail)
		})},
	}
}
