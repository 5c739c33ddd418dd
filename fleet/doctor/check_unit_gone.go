package doctor

// unitGone looks for services whose unit file is gone.
func unitGone() Check {
	return ofStatus("unit-gone",
		"What still runs is not started again, and after a reload nothing can start it.",
		"Put the unit file back, or let go of the service with: 1bit pkg unswitch UNIT")
}
