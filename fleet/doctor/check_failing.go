package doctor

// failing looks for services that are down or do not stay up.
func failing() Check {
	return ofStatus("failing",
		"A service that is down serves nobody, and one that is started again and again serves only between its ends.",
		"1bit incident UNIT says how it ended; 1bit pkg rollback UNIT --restart goes back")
}
