package doctor

// overridden looks for values that win over ours.
func overridden() Check {
	return ofStatus("overridden",
		"A line that wins over our drop-in decides which package starts, so a switch or a rollback changes nothing.",
		"Take the line out, or move it into a file whose name sorts before zz-1bit.conf, then: systemctl --user daemon-reload")
}
