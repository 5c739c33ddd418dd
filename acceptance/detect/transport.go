package detect

func transport() face {
	return face{
		FaceInfo: FaceInfo{Name: Transport, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "a connection that gave no answer, or a part of one"},
		sees: ended,
		find: []detector{on(func(x *Exchange) []Finding {
			if x.Answer != nil || x.Deadline {
				return nil
			}
			return one(Fault, "", "%v", x.why())
		})},
	}
}
