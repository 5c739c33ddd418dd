package doctor

// misplacedKey looks for keys that stand where systemd does not read them.
func misplacedKey() Check {
	return ofStatus("misplaced-key",
		"systemd passes over a key in the wrong section, or in a section whose name it does not know, without an error: the setting is not in force.",
		"Move the line into the section that systemd reads it in, then: systemctl --user daemon-reload")
}
