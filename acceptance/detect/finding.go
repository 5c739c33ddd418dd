// Package detect finds the faces of a fault: the ways in which one shows, on the wire, in the server's log, in the
// kernel's log and in how processes end. Each face is one small file.
package detect

// A Finding is one occurrence of a face.
type Finding struct {
	Face    string `json:"face"`
	Grade   Grade  `json:"grade"`
	Detail  string `json:"detail"`            // one sentence for people
	Excerpt string `json:"excerpt,omitempty"` // the raw bytes it was seen in, at most 200, quoted as Go does where they are no clean text
}

// A Grade says what a finding counts as.
type Grade string

// Grades of findings.
const (
	Fault   Grade = "fault"   // decides, unless the plan says that its face only reports
	Warning Grade = "warning" // never decides by itself
)
