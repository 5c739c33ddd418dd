package doctor

// hostChecks are those about the host itself, in the order in which they are shown.
func hostChecks() []Check { return nil }
