package detect

func text() face {
	return face{
		FaceInfo: FaceInfo{Name: Text, Default: Report, Unit: UnitRequest,
			About: "shapes of text that broken answers have, and healthy ones have too"},
		sees: withTokens,
		find: []detector{on(func(x *Exchange) []Finding {
			if x.Answer == nil || !answered200(x.request()) {
				return nil
			}
			var found []Finding
			for _, s := range shapes(x.Answer) {
				found = append(found, one(Warning, quote([]byte(x.Answer.Content)), "%s: %s", s.name, s.detail)...)
			}
			return found
		})},
	}
}
