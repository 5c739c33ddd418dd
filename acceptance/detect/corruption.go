package detect

func corruption() face {
	return face{
		FaceInfo: FaceInfo{Name: Corruption, Default: Gate, Gates: true, Unit: UnitRequest, Needs: NeedsSentinels,
			About: "the answer to a known request differs, and rounding does not explain it"},
		sees: compared,
		find: []detector{on(func(p Pair) []Finding { return nil }), on(func(c Comparison) []Finding { return nil })},
	}
}
