package detect

import (
	"unicode/utf8"

	"github.com/1bit-systems/pkg/engine"
)

func invalidUTF8() face {
	return face{
		FaceInfo: FaceInfo{Name: UTF8, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "the raw bytes of an answer are no UTF-8, other than by a character that the limit of tokens cut"},
		sees: answered,
		find: []detector{on(func(x *Exchange) []Finding {
			f, bad := x.fault(anyStatus, engine.FaceUTF8)
			if !bad {
				return nil
			}
			at := 0
			for raw := x.Answer.Raw; at < len(raw); {
				r, n := utf8.DecodeRune(raw[at:])
				if r == utf8.RuneError && n == 1 {
					break
				}
				at += n
			}
			return one(Fault, around(x.Answer.Raw, at), "%s", f.Detail)
		})},
	}
}
