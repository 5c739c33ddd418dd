package doctor

// adoptionDrift looks for lines that were edited after they were taken over.
func adoptionDrift() Check {
	return ofStatus("adoption-drift",
		"An edit of a line that adopt took over has no effect, and whoever made it believes that it has.",
		"1bit pkg unadopt UNIT, then: 1bit pkg adopt UNIT")
}
