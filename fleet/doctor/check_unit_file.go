package doctor

// unitFile looks for lines and files of a unit that systemd passes over.
func unitFile() Check {
	return ofStatus("unit-file",
		"What systemd passes over is not in force, and it says so in the journal at most: the unit starts on its defaults, or not at all.",
		"Correct the file, then: systemctl --user daemon-reload")
}
