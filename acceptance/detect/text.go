package detect

import "net/http"

func text() face {
	return face{
		FaceInfo: FaceInfo{Name: Text, Default: Report, Unit: UnitRequest,
			About: "shapes of text that broken answers have, and healthy ones have too"},
		sees: withTokens,
		find: []detector{on(func(x *Exchange) []Finding {
			if x.Answer == nil || x.Answer.Status != http.StatusOK {
				return nil
			}
			var found []Finding
			for _, w := range x.Answer.Warnings() {
				found = append(found, one(Warning, quote([]byte(x.Answer.Content)), "%s: %s", w.Face, w.Detail)...)
			}
			return found
		})},
	}
}
