package detect

func empty() face {
	return face{
		FaceInfo: FaceInfo{Name: Empty, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "an answer with status 200 and without any token"},
		sees: answered200,
		find: []detector{on(func(x *Exchange) []Finding {
			a := x.Answer
			if a == nil || !answered200(x.request()) || len(x.faults) > 0 || x.NPredict < 1 {
				return nil
			}
			if a.TokensPredicted > 0 || a.Content != "" || len(a.Tokens) > 0 || len(a.TokenIDs) > 0 {
				return nil
			}
			return one(Fault, quote(a.Raw), "status 200 and no token, %d were asked for", x.NPredict)
		})},
	}
}
