package systemd

import (
	"fmt"
	"strings"
)

// Argv is what the process of a command gets: its Argv with variables replaced by systemd's own
// rules, which are not a shell's: "${A}" anywhere in a word is the value as it is, "$A" as a
// word of its own the words of the value (or none), "$$" a dollar sign. The prefix ":" turns
// that off.
//
// inherited is what the manager hands to every process (Manager.Environment). With nil it is not
// known, and then so is every variable that no file sets. unsure says why a word is not certain.
func (s *Settings) Argv(c StartCommand, inherited map[string]string) (argv []string, unsure string) {
	if c.NoVariables() {
		return c.Argv, c.Unsure
	}
	r := replacer{all: s.environment(inherited), unsure: c.Unsure, others: s.unread}
	switch {
	case len(s.Values("Service", "PAMName")) > 0:
		r.others = firstOf(r.others, "no file sets it, PAM may")
	case inherited == nil:
		r.others = firstOf(r.others, "no file sets it, the manager may")
	}
	for _, word := range c.Argv {
		if name, ok := strings.CutPrefix(word, "$"); ok && !strings.HasPrefix(name, "{") && !strings.HasPrefix(name, "$") {
			argv = append(argv, r.split(name)...)
		} else {
			argv = append(argv, r.inside(word))
		}
	}
	if len(argv) == 0 {
		r.doubt("no word is left, not even the name of the process")
	}
	return argv, r.unsure
}

// replacer replaces the variables of one command.
type replacer struct {
	all    map[string]Setting
	others string // why a variable that is not in all may be set; "" when it is not
	unsure string
}

// ownVariables are those that systemd may set for a process by itself, whatever the files say.
const ownVariables = " PATH LANG HOME USER LOGNAME SHELL TERM INVOCATION_ID JOURNAL_STREAM LOG_NAMESPACE LISTEN_PID LISTEN_FDS " +
	"LISTEN_FDNAMES LISTEN_PIDFDID NOTIFY_SOCKET FDSTORE WATCHDOG_PID WATCHDOG_USEC MAINPID MANAGERPID MANAGERPIDFDID " +
	"SYSTEMD_EXEC_PID SYSTEMD_NSS_DYNAMIC_BYPASS RUNTIME_DIRECTORY STATE_DIRECTORY CACHE_DIRECTORY LOGS_DIRECTORY " +
	"CONFIGURATION_DIRECTORY CREDENTIALS_DIRECTORY MEMORY_PRESSURE_WATCH MEMORY_PRESSURE_WRITE TMPDIR XDG_RUNTIME_DIR " +
	"XDG_SESSION_ID XDG_SEAT XDG_VTNR PIDFILE REMOTE_ADDR REMOTE_PORT TRIGGER_UNIT TRIGGER_PATH TRIGGER_TIMER_REALTIME_USEC " +
	"TRIGGER_TIMER_MONOTONIC_USEC SERVICE_RESULT EXIT_CODE EXIT_STATUS MONITOR_SERVICE_RESULT "

// value is that of a variable, "" when it is not set.
func (r *replacer) value(name string) string {
	setting, set := r.all[name]
	switch {
	case set && setting.Unsure != "":
		r.doubt("what $%s is, is not certain: %s", name, setting.Unsure)
	case set:
	case !validName(name):
		// Versions differ in what they make of a name like "A=b" where A is set.
		if key, _, ok := strings.Cut(name, "="); ok && validName(key) {
			r.doubt("${%s} is not the name of a variable", name)
		}
	case strings.Contains(ownVariables, " "+name+" "):
		r.doubt("systemd may set $%s by itself", name)
	case r.others != "":
		r.doubt("what $%s is, is not certain: %s", name, r.others)
	}
	return setting.Value
}

func (r *replacer) doubt(format string, args ...any) {
	r.unsure = firstOf(r.unsure, fmt.Sprintf(format, args...))
}

// split makes the words of a variable that is a word by itself. A backslash takes the meaning off
// the byte after it, a quote that is not closed ends with the value.
func (r *replacer) split(name string) (words []string) {
	rest := r.value(name)
	for {
		word, after, more, _ := nextWord(rest, variableRule)
		if !more {
			return words
		}
		words, rest = append(words, word), after
	}
}

// inside replaces each ${NAME} and $$ of a word. A colon in the braces makes them plain text, and
// so does a missing end.
func (r *replacer) inside(word string) string {
	var out strings.Builder
	for i := 0; i < len(word); {
		rest := word[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "${"):
			end := strings.IndexAny(rest, "}:")
			if end < 0 {
				out.WriteString(rest)
				return out.String()
			}
			if rest[end] == '}' {
				out.WriteString(r.value(rest[2:end]))
			} else {
				out.WriteString(rest[:end+1])
			}
			i += end + 1
		case rest[0] == '$' && len(rest) > 1: // the byte after a dollar sign means nothing any more
			out.WriteString(rest[:2])
			i += 2
		default:
			out.WriteByte(rest[0])
			i++
		}
	}
	return out.String()
}
