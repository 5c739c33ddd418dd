package detect

func corruption() face {
	return face{
		FaceInfo: FaceInfo{Name: Corruption, Default: Gate, Gates: true, Unit: UnitRequest, Needs: NeedsSentinels,
			About: "the answer to a known request differs, and rounding does not explain it"},
		sees: compared,
		find: []detector{
			on(func(p Pair) []Finding {
				d, ok := compare(p.First, p.Second)
				if !ok || d.where == "" {
					return nil
				}
				return one(Fault, quote(p.Second.Raw), "two identical greedy requests, one after the other on a quiet server, differ %s", d.where)
			}),
			on(func(c Comparison) []Finding {
				d, ok := compare(c.Reference, c.Under)
				if !ok || d.where == "" {
					return nil
				}
				if shape := degenerate(c.Reference, c.Under); shape != "" {
					return one(Fault, quote(c.Under.Raw), "a known request is answered otherwise under load %s; only this answer has %s", d.where, shape)
				}
				if d.rounding(c.Tau) {
					return nil
				}
				return one(Fault, quote(c.Under.Raw), "a known request is answered otherwise under load %s; %s", d.where, d.weight(c.Tau))
			}),
		},
	}
}
