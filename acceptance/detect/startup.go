package detect

func startup() face {
	return face{
		FaceInfo: FaceInfo{Name: Startup, Default: Gate, Gates: true, Unit: UnitArm,
			About: "the server never became ready, and no cause outside of it is known"},
		find: []detector{on(func(f FailedStart) []Finding {
			if f.Cause != "" {
				return one(Invalid, quote([]byte(f.Log)), "%s: %s", f.Cause, f.Detail)
			}
			return one(Fault, quote([]byte(f.Log)), "%s", f.Detail)
		})},
	}
}
