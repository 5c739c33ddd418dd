package systemd

import (
	"fmt"
	"path"
	"strings"
)

// takeCommands takes an ExecStart= or another command. Only those of ExecStart= are kept: a bad
// one of any key loses the rest of the file.
func (m *merger) takeCommands(key, value string) bool {
	commands, bad := parseCommands(value, m.specifiers)
	doubt := m.settings.doubted(m.file, m.line)
	for i, c := range commands {
		if len(c.Argv) > 1 && c.Argv[1] == "(deleted)" {
			m.problem(false, `"(deleted)" is a word of the command: it came from the link of a process whose program was gone`)
		}
		commands[i].Unsure = firstOf(doubt, c.Unsure)
		if c.doubt != "" && !strings.Contains(c.Prefix, "-") {
			m.doubt(c.doubt)
		}
	}
	switch key {
	case "ExecStop":
		if value == "" {
			m.stops = 0
		}
		m.stops += len(commands)
	case "ExecStart":
		if value == "" && doubt == "" {
			m.settings.start = nil
		}
		for i := range m.settings.start {
			if value == "" {
				m.settings.start[i].Unsure = firstOf(m.settings.start[i].Unsure, doubt)
			}
		}
		for _, c := range commands {
			c.File, c.Line = m.file, m.line
			m.settings.start = append(m.settings.start, c)
		}
	}
	if bad == nil {
		return true
	}
	if !bad.fatal {
		m.problem(false, "%s= ignored, %s: %s", key, bad.what, value)
		return true
	}
	m.endOfFile("%s=, %s: %s", key, bad.what, value)
	return false
}

// endOfFile notes a line because of which systemd reads no further: of a drop-in the rest is lost,
// with one in the unit file the unit does not start.
func (m *merger) endOfFile(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if !isUnitFile(m.file) {
		m.problem(true, "ignored with the rest of the file: %s", what)
	} else {
		m.refuse(m.file, m.line, "bad %s", what)
	}
}

// takeFolder takes a WorkingDirectory=, takePerson a User= or Group=, and takePlace some others, for
// what is wrong with it: of these a bad value loses the rest of the file.
func (m *merger) takeFolder(value string) bool {
	if value == "" || value == "~" || value[0] == '-' {
		return true
	}
	return m.takePath("WorkingDirectory", value)
}

func (m *merger) takePath(key, value string) bool {
	name, unsure, ok := m.specifiers.expand(value)
	bad := badPath(name)
	switch {
	case !ok:
		bad = "a % that should be doubled"
	case unsure != "":
		bad = ""
		m.doubtSpecifier(value, unsure)
	}
	if bad == "" {
		return true
	}
	m.endOfFile("%s=, %s: %s", key, bad, value)
	return false
}

func (m *merger) takePerson(key, value string) bool {
	_, unsure, ok := m.specifiers.expand(value)
	if ok {
		m.doubtSpecifier(value, unsure)
		return true
	}
	m.endOfFile("%s=, a %% that should be doubled: %s", key, value)
	return false
}

// doubtSpecifier notes a specifier that not every systemd knows.
func (m *merger) doubtSpecifier(value, unsure string) {
	if m.specifiers.doubtful(value) {
		m.doubt(unsure)
	}
}

func (m *merger) takePlace(key, value string) bool {
	switch {
	case key == "DynamicUser":
		if !badBool(value) {
			return true
		}
		m.endOfFile("%s=, neither yes nor no: %s", key, value)
		return false
	case value == "":
		return true
	case key == "PIDFile":
		if _, _, ok := m.specifiers.expand(value); !ok { // passed over
			return true
		}
		if !path.IsAbs(value) {
			value = "/run/" + value
		}
	}
	return m.takePath(key, value)
}

// checkSearchPath doubts the programs that are looked up where the unit says.
func (m *merger) checkSearchPath() {
	if len(m.settings.Values("Service", "ExecSearchPath")) == 0 {
		return
	}
	for i, c := range m.settings.start {
		if c.Path != "" && !path.IsAbs(c.Path) {
			m.settings.start[i].Unsure = firstOf(c.Unsure, "from version 251 on ExecSearchPath= says where "+c.Path+" is looked for")
		}
	}
}
