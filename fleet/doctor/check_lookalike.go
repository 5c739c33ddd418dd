package doctor

import "context"

// lookalike looks for services that are engines and run no package.
func lookalike() Check {
	return Check{
		Name:   "lookalike",
		Reason: "Nothing here can switch, check or roll back an engine that lies in no package, and nobody can say what is in it.",
		Remedy: "Take the engine in with 1bit pkg import, let the unit start it from there, then: 1bit pkg adopt UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			lookalikes, err := l.lookalikes()
			for _, one := range lookalikes {
				where := one.Unit
				if one.User != "" {
					where += " (" + one.User + ")"
				}
				add(where, one.Hint, "it looks like an engine and runs no package: %s", one.Why)
			}
			return err
		},
	}
}
