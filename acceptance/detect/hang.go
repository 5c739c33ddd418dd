package detect

func hang() face {
	return face{
		FaceInfo: FaceInfo{Name: Hang, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "no whole answer within the deadline"},
		sees: ended,
		find: []detector{on(func(x *Exchange) []Finding {
			if !x.Deadline {
				return nil
			}
			return one(Fault, "", "%v", x.why())
		})},
	}
}
