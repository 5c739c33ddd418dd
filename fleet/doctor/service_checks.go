package doctor

// serviceChecks are those about services and packages, in the order in which they are shown.
func serviceChecks() []Check { return nil }
