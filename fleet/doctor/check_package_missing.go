package doctor

// packageMissing looks for services whose armed package is not installed.
func packageMissing() Check {
	return ofStatus("package-missing",
		"The next start fails with status 203 as soon as the process that still runs ends.",
		"Install the package again: 1bit pkg install; or switch or roll back to one that is installed")
}
