package systemd

// Setting is the value of one environment variable and where it comes from.
type Setting struct {
	Value string
	File  string
	Line  int // 1 is the first
	// Unsure says why Value is not certain; it is empty when it is.
	Unsure string
}

// Kind says by what means a line touches a variable.
type Kind string

// The kinds, from the weakest to the strongest where they meet.
const (
	KindPassEnvironment  Kind = "PassEnvironment"  // hands through a value of the manager's: unsure
	KindEnvironment      Kind = "Environment"      // sets it
	KindReset            Kind = "reset"            // an empty Environment=: takes back all before it
	KindEnvironmentFile  Kind = "EnvironmentFile"  // sets it from a file, whatever Environment= says
	KindUnsetEnvironment Kind = "UnsetEnvironment" // takes it away in the end
)

// Assignment is one line that touches a variable.
type Assignment struct {
	Key    string
	Value  string // "" for KindReset and for an UnsetEnvironment= without a value
	File   string
	Line   int
	Kind   Kind
	Unsure string // why it is not certain that, or with what value, the line counts; "" when it is
}

// Edit is a change of one unit file or drop-in that has not been made yet.
type Edit struct {
	Path string
	Data []byte // the bytes as if written
	Gone bool   // as if removed; Data is not looked at
}
