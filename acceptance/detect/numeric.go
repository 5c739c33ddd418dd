package detect

func numeric() face {
	return face{
		FaceInfo: FaceInfo{Name: Numeric, Default: Report, Gates: true, Unit: UnitRequest, Needs: NeedsSentinels,
			About: "the answer to a known request differs under load by what rounding explains"},
		sees: compared,
		find: []detector{on(func(c Comparison) []Finding {
			d, ok := compare(c.Reference, c.Under)
			switch {
			case !ok:
			case d.where == "" && d.drift > c.Tau:
				return one(Warning, quote(c.Under.Raw), "a known request has the same tokens under load, and log-probabilities that differ by up to %.3g", d.drift)
			case d.where != "" && d.rounding(c.Tau) && degenerate(c.Reference, c.Under) == "":
				return one(Fault, quote(c.Under.Raw), "a known request is answered otherwise under load %s; %s", d.where, d.weight(c.Tau))
			}
			return nil
		})},
	}
}
