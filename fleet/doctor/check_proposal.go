package doctor

// proposal looks for proposals that cannot be taken.
func proposal() Check {
	return ofStatus("proposal",
		"The switch that somebody proposed is refused when the owner comes to accept it.",
		"Install what is proposed, or withdraw it: 1bit pkg propose UNIT --withdraw")
}
