package doctor

// boundCommand looks for commands that name a package themselves.
func boundCommand() Check {
	return ofStatus("bound-command",
		"A switch moves variables; a package that stands in the command itself would stay behind, so the switch is refused when it is needed.",
		"1bit pkg adopt UNIT takes the command over")
}
