package systemd

import (
	"time"
)

// Unit is a service as a manager has it loaded: properties, not files.
type Unit struct {
	ID          string   // the primary name, such as llm.service
	Names       []string // ID and every alias
	Description string
	LoadState   string // loaded, masked, bad-setting, error; never not-found (that is ErrNoUnit)
	ActiveState string // active, activating, inactive, failed, …
	SubState    string // running, auto-restart, dead, …
	Result      string // success, exit-code, timeout, start-limit-hit, …: of the last run
	Type        string // simple, exec, notify, …
	Restart     string // no, always, on-failure, …

	FragmentPath     string
	DropInPaths      []string // as merged: a later one wins
	NeedDaemonReload bool     // files differ from what is loaded; false does not prove that they do not

	MainPID        int // 0: none
	ControlGroup   string
	NRestarts      int    // automatic restarts, not those that were asked for
	InvocationID   string // 32 hexadecimal digits, "" when it never ran; differs after every start
	ExecMainCode   int    // how the last main process ended: SIGCHLD's si_code (1 exited, 2 killed, 3 dumped)
	ExecMainStatus int    // its exit status or signal
	MainStarted    time.Time
	MainExited     time.Time // of the last main process that ended; zero while none has
	ActiveLeft     time.Time // when it was last no longer active: as the first sign of a stop that was asked for

	// Environment is the Environment= of the loaded unit. It is not what a process gets: see
	// Settings and Processes.
	Environment      []string
	EnvironmentFiles []EnvironmentFile
	UnsetEnvironment []string
	ExecStart        []Command
	CommandsUnread   bool // ExecStart is empty because a command is not UTF-8, which D-Bus does not carry
	WorkingDirectory string

	TimeoutStart time.Duration // 0: infinity
	TimeoutStop  time.Duration // 0: infinity

	RestartDelay       time.Duration // RestartSec=
	StartLimitBurst    int           // starts that are allowed within the interval; 0: any number
	StartLimitInterval time.Duration // 0: there is no limit
	MemoryMax          *int64        // bytes; nil: no limit
	MemoryPeak         *int64        // bytes; nil: not told, as by systemd before 255

	PrivateDevices bool
	ProtectHome    string // no, yes, read-only or tmpfs

	UnitFileState string   // enabled, disabled, static, linked, masked, …
	WantedBy      []string // loaded units that start it with them, sorted: WantedBy, RequiredBy, UpheldBy and TriggeredBy

	// SearchPath is the manager's list of unit folders, the strongest first. ReadSettings needs
	// it to tell which of two drop-ins of the same name counts.
	SearchPath []string

	folders []string // the drop-in folders that are there; nil where that is not known
}

// EnvironmentFile is one EnvironmentFile= of a loaded unit; Path may be a glob pattern.
type EnvironmentFile struct {
	Path     string
	Optional bool // written with a leading "-": a missing file is no error
}

// Command is one ExecStart= of a loaded unit, with specifiers expanded and variables not.
type Command struct {
	Path string
	Argv []string
}
