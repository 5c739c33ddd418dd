package incident

// Analyse makes a report of evidence alone: the same evidence gives the same report. It never fails; what is not known
// is said.
func Analyse(e *Evidence) *Report {
	return &Report{Schema: Schema, Unit: e.Unit, Evidence: e}
}
