package incident

import (
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/systemd"
)

// A markKind names what systemd says of a unit.
type markKind string

const (
	markStarting     markKind = "starting"
	markStarted      markKind = "started"
	markStopping     markKind = "stopping"
	markStopped      markKind = "stopped"
	markExit         markKind = "exit"    // the main process ended badly; code, status, name
	markSuccess      markKind = "success" // the unit ended well
	markResult       markKind = "result"  // it failed; name
	markRestart      markKind = "restart" // scheduled; number where it is told
	markStartLimit   markKind = "start-limit"
	markWatchdog     markKind = "watchdog"
	markStartTimeout markKind = "start-timeout"
	markStopTimeout  markKind = "stop-timeout"
	markRuntimeLimit markKind = "runtime-limit"
	markControl      markKind = "control" // another command of the unit failed; code, status, name: which, where it is told
	markOOM          markKind = "oom"
	markOOMD         markKind = "oomd" // systemd-oomd
	markResources    markKind = "resources"
	markClientKill   markKind = "client-kill" // systemctl kill; name
	markCoredump     markKind = "coredump"    // name, number: pid
)

// A mark is one message of systemd's about a unit.
type mark struct {
	kind   markKind
	at     time.Time
	mono   time.Duration // since the boot; 0: not told
	code   string        // exited, killed, dumped
	status int
	name   string // of a signal, a result, or how an exit status is called
	number int    // restart counter or pid; -1: not told
	cpu    time.Duration
	text   string
}

var (
	reExit     = lazyregexp.New(`(?i)\b(main|control) process exited, code=(\w+), status=(\d+)`)
	reResult   = lazyregexp.New(`[Ff]ailed with result '([\w-]+)'|entered failed state`)
	reRestart  = lazyregexp.New(`(?i)scheduled restart job, restart counter is at (\d+)|holdoff time over, scheduling restart`)
	reConsumed = lazyregexp.New(`[Cc]onsumed (.+?) CPU time`)
	reSent     = lazyregexp.New(`Sent signal (SIG\w+) to (?:main|control) process (\d+) \(.*\) on client request`)
	reCore     = lazyregexp.New(`^Process (\d+) \((.*)\) of user \d+ (?:dumped core|terminated abnormally)`)
)

// readMark reads an entry of systemd's about a unit, or of systemd-coredump's about one of its processes.
func readMark(e systemd.Entry) (mark, bool) {
	m := mark{at: e.At, mono: e.Monotonic, number: -1, text: e.Message}
	if e.ID == systemd.IDCoredump || e.Identifier == "systemd-coredump" {
		return m.coredump(e)
	}
	if e.Identifier != "systemd" || e.Fields["_TRANSPORT"] == "stdout" {
		return m, false
	}
	switch e.ID {
	case systemd.IDUnitStarting:
		m.kind = markStarting
	case systemd.IDUnitStarted:
		m.kind = markStarted
	case systemd.IDUnitStopping:
		m.kind = markStopping
	case systemd.IDUnitStopped:
		m.kind = markStopped
	case systemd.IDUnitSucceeded:
		m.kind = markSuccess
	case systemd.IDOOM:
		m.kind = markOOM
	case systemd.IDOOMD:
		m.kind = markOOMD
	case systemd.IDProcessExited:
		return m.exit(e)
	case systemd.IDFailureResult:
		m.kind, m.name = markResult, e.Fields["UNIT_RESULT"]
		if m.name == "" {
			return m.words(e)
		}
	case systemd.IDRestartScheduled:
		m.kind = markRestart
		if n, err := strconv.Atoi(e.Fields["N_RESTARTS"]); err == nil {
			m.number = n
			break
		}
		return m.words(e)
	case systemd.IDResources:
		m.kind = markResources
		if n, err := strconv.ParseInt(e.Fields["CPU_USAGE_NSEC"], 10, 64); err == nil && n >= 0 {
			m.cpu = time.Duration(n)
			break
		}
		return m.words(e)
	default:
		return m.words(e)
	}
	return m, true
}

// exit reads how the main process ended, or another of the unit's commands (ExecStartPre= and the like).
func (m mark) exit(e systemd.Entry) (mark, bool) {
	m, ok := m.words(e)
	if !ok && e.Missing == "" {
		return m, false
	}
	if m.kind != markControl {
		m.kind = markExit
	}
	if code := e.Fields["EXIT_CODE"]; code != "" {
		m.code, ok = code, true
	}
	if n, err := strconv.Atoi(e.Fields["EXIT_STATUS"]); err == nil {
		m.status = n
	}
	return m, ok
}

// words reads the text of a message.
func (m mark) words(e systemd.Entry) (mark, bool) {
	s := strings.TrimPrefix(e.Message, e.Unit+": ")
	has := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(s, w) {
				return false
			}
		}
		return true
	}
	if f := reExit().FindStringSubmatch(s); f != nil {
		m.kind, m.code, m.status = markExit, f[2], atoi(f[3])
		if strings.EqualFold(f[1], "control") {
			m.kind, m.name = markControl, e.Fields["COMMAND"]
		}
	} else if f := reResult().FindStringSubmatch(s); f != nil {
		m.kind, m.name = markResult, f[1]
	} else if f := reRestart().FindStringSubmatch(s); f != nil {
		m.kind = markRestart
		if f[1] != "" {
			m.number = atoi(f[1])
		}
	} else if f := reSent().FindStringSubmatch(s); f != nil {
		m.kind, m.name, m.number = markClientKill, f[1], atoi(f[2])
	} else if f := reConsumed().FindStringSubmatch(s); f != nil {
		m.kind, m.cpu = markResources, span(f[1])
	} else {
		switch {
		case has("tart request repeated too quickly"):
			m.kind = markStartLimit
		case has("atchdog timeout"):
			m.kind = markWatchdog
		case has("tart operation timed out"), has("tate 'start", "timed out"):
			m.kind = markStartTimeout
		case has("reached runtime time limit"):
			m.kind = markRuntimeLimit
		case has("tate 'stop", "timed out"), has("stop-sig", "timed out"), has("tate 'final", "timed out"):
			m.kind = markStopTimeout
		case has("has been killed by the OOM killer"):
			m.kind = markOOM
		case has("systemd-oomd killed"):
			m.kind = markOOMD
		case has("Deactivated successfully"), has("Succeeded."):
			m.kind = markSuccess
		case strings.HasPrefix(s, "Starting "):
			m.kind = markStarting
		case strings.HasPrefix(s, "Started "):
			m.kind = markStarted
		case strings.HasPrefix(s, "Stopping "):
			m.kind = markStopping
		case strings.HasPrefix(s, "Stopped "):
			m.kind = markStopped
		}
	}
	return m, m.kind != ""
}

// coredump reads an entry of systemd-coredump's, whose text holds the stacks.
func (m mark) coredump(e systemd.Entry) (mark, bool) {
	f := reCore().FindStringSubmatch(e.Message)
	m.kind, m.name, m.number = markCoredump, e.Fields["COREDUMP_SIGNAL_NAME"], atoi(e.Fields["COREDUMP_PID"])
	if m.number == 0 && f != nil {
		m.number = atoi(f[1])
	}
	if m.name == "" {
		m.name = signalName(atoi(e.Fields["COREDUMP_SIGNAL"]))
	}
	return m, f != nil || e.ID == systemd.IDCoredump
}

// span reads how systemd writes a time: "6h 7min 5.963s". What it is not makes 0.
func span(s string) time.Duration {
	units := []struct {
		name string
		is   time.Duration
	}{{"month", 2629800 * time.Second}, {"min", time.Minute}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"s", time.Second},
		{"h", time.Hour}, {"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour}, {"y", 31557600 * time.Second}}
	var total time.Duration
	for word := range strings.FieldsSeq(s) {
		for _, u := range units {
			number, ok := strings.CutSuffix(word, u.name)
			if !ok {
				continue
			}
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || n < 0 || n > 1e6 {
				return 0
			}
			total += time.Duration(n * float64(u.is))
			break
		}
	}
	return total
}

// atoi reads a number that is not negative, 0 if it is none.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
