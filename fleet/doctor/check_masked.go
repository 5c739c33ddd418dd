package doctor

// masked looks for services that are masked.
func masked() Check {
	return ofStatus("masked",
		"Nothing starts a masked service, neither a boot nor a restart after a switch.",
		"systemctl --user unmask UNIT, or let go of it with: 1bit pkg unswitch UNIT")
}
