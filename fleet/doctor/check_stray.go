package doctor

// stray looks for services whose program lies in no package.
func stray() Check {
	return ofStatus("stray",
		"What starts lies in no package, whatever the variables of the unit name: a switch changes nothing of what serves.",
		"Let the unit start a package's program: name it in ONEBIT_LLAMA_SERVER, or take the command over with: 1bit pkg adopt UNIT")
}
