package detect

func leak() face {
	return face{
		FaceInfo: FaceInfo{Name: Leak, Default: Gate, Gates: true, Unit: UnitRequest,
			About: "an answer carries the nonce of another request"},
		sees: withWords,
		find: []detector{on(func(x *Exchange) []Finding {
			if x.Answer == nil || x.book == nil {
				return nil
			}
			of, at, leaked := x.book.Find(x.Answer.Content, x.ID)
			if !leaked {
				return nil
			}
			found := one(Fault, around([]byte(x.Answer.Content), at), "the answer has the nonce of request %d", of)
			if of == x.tenant {
				found[0].Detail += ", which the slot served before"
			}
			return found
		})},
	}
}
