package detect

func restart() face {
	return face{
		FaceInfo: FaceInfo{Name: Restart, Default: Gate, Gates: true, Unit: UnitArm,
			About: "another process listens on the server's port than before"},
		find: []detector{on(func(r Relisten) []Finding {
			if r.Before == r.After || r.Before.PID == 0 || r.After.PID == 0 {
				return nil
			}
			return one(Fault, "", "the server was replaced: process %d (started at tick %d) listened, now process %d (%d)",
				r.Before.PID, r.Before.Start, r.After.PID, r.After.Start)
		})},
	}
}
