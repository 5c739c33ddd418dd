package detect

import (
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

func nanWire() face {
	return face{
		FaceInfo: FaceInfo{Name: NaNWire, Default: Gate, Gates: true, Unit: UnitRequest, Needs: NeedsProbs,
			About: "a log-probability is null, so not finite: a true zero comes as a number"},
		sees: withProbs,
		find: []detector{on(func(x *Exchange) []Finding {
			f, bad := x.fault(anyStatus, engine.FaceNaN)
			if !bad {
				return nil
			}
			return one(Fault, nullAt(x.Answer.Raw), "%s", f.Detail)
		})},
	}
}

var nullLogprob = lazyregexp.New(`"logprob"\s*:\s*(?:null|[-+]?[A-Za-z])`)

// nullAt quotes the place of the first log-probability that is no number.
func nullAt(raw []byte) string {
	at := nullLogprob().FindIndex(raw)
	if at == nil {
		return quote(raw)
	}
	return around(raw, at[0])
}
