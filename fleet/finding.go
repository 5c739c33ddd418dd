package fleet

import "fmt"

// Finding is something about a unit that will surprise its owner, and what to do about it. A warning of
// [Service.Warnings] is the text of one.
type Finding struct {
	Check  string // the name of the doctor's check that explains it; "" for what is only to be known
	Unit   string
	Where  string // the file with its line that makes it so, "" where there is none
	What   string
	Remedy string // one sentence, as a command where there is one; "" for that of the check
}

// String is what status says.
func (f Finding) String() string {
	if f.Remedy == "" {
		return f.What
	}
	return f.What + ": " + f.Remedy
}

// find adds a finding, and its text to the warnings.
func (s *Service) find(check, remedy, what string, args ...any) {
	s.add(Finding{Check: check, Remedy: remedy, What: fmt.Sprintf(what, args...)})
}

func (s *Service) add(f Finding) {
	f.Unit = s.Unit
	s.findings = append(s.findings, f)
	s.Warnings = append(s.Warnings, f.String())
}

// precede puts what was done for a look before what the look found.
func (s *Service) precede(notes []string) {
	said := make([]Finding, len(notes))
	for i, note := range notes {
		said[i] = Finding{Unit: s.Unit, What: note}
	}
	s.findings, s.Warnings = append(said, s.findings...), append(notes, s.Warnings...)
}

// at is a file with its line, as a finding names it.
func at(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }
