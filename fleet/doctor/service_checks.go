package doctor

// serviceChecks are those about services and packages, in the order in which they are shown.
func serviceChecks() []Check {
	return []Check{
		// what is down, or was
		failing(), unitGone(), masked(), restarts(), oom(), startLimit(), noRestart(), notifyTimeout(), wantedBy(), port(),
		// what the unit's files say
		unitFile(), misplacedKey(), quoting(), execVariable(), sandbox(), nanContinue(), fixOff(), notLoaded(), overridden(), shadowed(),
		ownFile(), adoptionDrift(), boundCommand(), stray(),
		// what runs, and what it runs from
		restartPending(), mixedPackage(), packageGone(), packageMissing(), packageState(), requirement(), newerFix(), hold(), proposal(), lookalike(),
	}
}
