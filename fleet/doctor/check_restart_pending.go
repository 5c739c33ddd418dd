package doctor

// restartPending looks for services that run something else than what is armed.
func restartPending() Check {
	return ofStatus("restart-pending",
		"The next crash or reboot starts another package than the one that serves now, at a time that nobody has chosen.",
		"Restart it when it suits: 1bit pkg restart UNIT; or go back with: 1bit pkg rollback UNIT")
}
