package detect

func numeric() face {
	return face{
		FaceInfo: FaceInfo{Name: Numeric, Default: Report, Gates: true, Unit: UnitRequest, Needs: NeedsSentinels,
			About: "the answer to a known request differs under load where the two likeliest tokens were nearly even"},
		sees: compared,
		find: []detector{on(func(c Comparison) []Finding { return nil })},
	}
}
