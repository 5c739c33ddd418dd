package engine

import (
	"strings"
	"time"
)

// ParseLogLine reads one line of a llama-server log: with or without a router's
// [port], time and level, terminal colours or a carriage return; also the JSON
// lines of 2024. It reports false for a line that says nothing of interest.
//
// Lines come in several generations of spelling, and all of them are read by
// hand: a soak's log has gigabytes, and regular expressions take some 25 µs a
// line where this takes a fifth of one.
func ParseLogLine(line string) (LogEvent, bool) {
	var ev LogEvent
	if !ev.parse(line) {
		return LogEvent{}, false
	}
	return ev, true
}

// parse fills an event that is zero. Where it returns false the event holds
// whatever was read, and the kind logHead if the line begins a timing.
func (ev *LogEvent) parse(line string) bool {
	ev.Slot, ev.Task = -1, -1
	if strings.IndexByte(line, 0x1b) >= 0 {
		line = withoutColour(line)
	}
	for line != "" && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	if line == "" {
		return false
	}
	if line[0] == '{' {
		return ev.parseJSON(line)
	}
	text := ev.prefixes(line)
	ev.Detail = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "slot "); ok {
		return ev.slotLine(rest)
	}
	if rest, ok := strings.CutPrefix(text, "srv "); ok && ev.serverLine(rest) {
		return true
	}
	return ev.otherLine(text)
}

// prefixes takes off `[port] ` and `minutes.seconds.milliseconds.microseconds level `.
func (ev *LogEvent) prefixes(line string) string {
	if line[0] == '[' {
		port, rest, ok := cutNumber(line[1:])
		if rest, closed := strings.CutPrefix(rest, "] "); ok && closed {
			ev.Router, line = port, rest
		}
	}
	// The minutes are not padded, the rest is: 367.05.963.920 E
	const rest = len(".05.963.920 E ")
	n := digits(line)
	if n == 0 || n > 9 || len(line) < n+rest {
		return line
	}
	p := line[n : n+rest]
	if p[0] != '.' || p[3] != '.' || p[7] != '.' || p[11] != ' ' || p[13] != ' ' || p[12] < 'A' || p[12] > 'Z' {
		return line
	}
	if digits(p[1:3]) != 2 || digits(p[4:7]) != 3 || digits(p[8:11]) != 3 {
		return line
	}
	ev.Timed, ev.Level = true, p[12]
	ev.Time = time.Duration(number(line[:n]))*time.Minute + time.Duration(number(p[1:3]))*time.Second +
		time.Duration(number(p[4:7]))*time.Millisecond + time.Duration(number(p[8:11]))*time.Microsecond
	return line[n+rest:]
}

// cutFunction takes `  function: ` off the beginning.
func cutFunction(s string) (name, text string, ok bool) {
	s = trimSpaces(s)
	n := 0
	for n < len(s) && s[n] != ':' && s[n] != ' ' && s[n] != '\t' {
		n++
	}
	if n == 0 || !strings.HasPrefix(s[n:], ": ") {
		return "", "", false
	}
	return s[:n], s[n+2:], true
}

// slotLine reads what follows "slot ": `function: id  1 | task 2 | text`.
func (ev *LogEvent) slotLine(s string) bool {
	text, ok := ev.slotHead(s)
	return ok && ev.slotText(text)
}

// slotHead reads slot and task and returns the text behind them.
func (ev *LogEvent) slotHead(s string) (string, bool) {
	_, s, ok := cutFunction(s)
	if !ok || !strings.HasPrefix(s, "id ") {
		return "", false
	}
	slot, s, ok := cutNumber(trimSpaces(s[len("id "):]))
	if !ok {
		return "", false
	}
	if s, ok = strings.CutPrefix(s, " | task "); !ok {
		return "", false
	}
	task, s, ok := cutSigned(s)
	if !ok {
		return "", false
	}
	if s, ok = strings.CutPrefix(s, " |"); !ok {
		return "", false
	}
	ev.Slot, ev.Task = slot, task
	return trimSpaces(s), true
}

// serverLine reads what follows "srv ": `function: text`, what the server says
// of itself and of the whole.
func (ev *LogEvent) serverLine(s string) bool {
	name, text, ok := cutFunction(s)
	if !ok {
		return false
	}
	switch {
	case strings.HasPrefix(text, "initializing"):
		return ev.startup(text)
	case name == "log_server_r":
		return ev.served(text)
	case name == "send_error":
		return ev.sentError(text)
	case strings.HasPrefix(text, "cancel task, id_task = "):
		return ev.cancel(text[len("cancel task, id_task = "):])
	case strings.HasPrefix(text, "purging slot "):
		return ev.purge(text[len("purging slot "):])
	case strings.HasPrefix(text, " - cache state: "):
		return ev.cache(text[len(" - cache state: "):])
	case text == "all slots are idle":
		ev.Kind = LogIdle
		return true
	}
	return false
}

func (ev *LogEvent) cancel(s string) bool {
	task, _, ok := cutNumber(s)
	if ok {
		ev.Kind, ev.Task = LogCancel, task
	}
	return ok
}

// purge reads what follows in `purging slot 0 with 1907 tokens`.
func (ev *LogEvent) purge(s string) bool {
	slot, s, ok := cutNumber(s)
	tokens, _, also := cutNumber(strings.TrimPrefix(s, " with "))
	if ok && also {
		ev.Kind, ev.Slot, ev.Tokens = LogPurge, slot, tokens
	}
	return ok && also
}

// cache reads what follows in ` - cache state: 6 prompts, 0.044 MiB (limits: …`.
func (ev *LogEvent) cache(s string) bool {
	entries, s, ok := cutNumber(s)
	mib, _, also := cutFloat(strings.TrimPrefix(s, " prompts, "))
	if ok && also {
		ev.Kind, ev.Entries, ev.MiB = LogCache, entries, mib
	}
	return ok && also
}

// startup reads `initializing, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'`
// and the older `initializing slots, n_slots = 2`.
func (ev *LogEvent) startup(text string) bool {
	s := strings.TrimPrefix(text[len("initializing"):], " slots")
	s, ok := strings.CutPrefix(s, ", n_slots = ")
	if !ok {
		return false
	}
	if ev.Slots, s, ok = cutNumber(s); !ok {
		return false
	}
	ev.Kind = LogStartup
	if rest, found := strings.CutPrefix(s, ", n_ctx_slot = "); found {
		ev.Context, s, _ = cutNumber(rest)
	}
	ev.KVUnified = strings.HasPrefix(s, ", kv_unified = 'true'")
	return true
}

// served reads `done request: POST /completion 127.0.0.1 200`. A path may hold
// anything, spaces too, so it is what stands between its neighbours.
func (ev *LogEvent) served(text string) bool {
	s, ok := strings.CutPrefix(strings.TrimPrefix(text, "done "), "request: ")
	if !ok {
		return false
	}
	last := strings.LastIndexByte(s, ' ')
	first := strings.IndexByte(s, ' ')
	if first < 1 || last <= first {
		return false
	}
	status, rest, ok := cutNumber(s[last+1:])
	remote := strings.LastIndexByte(s[:last], ' ')
	if !ok || rest != "" || remote <= first {
		return false
	}
	ev.Kind, ev.Path, ev.Status = LogHTTP, s[first+1:remote], status
	return true
}

// sentError reads `task id = 12, error: Context size has been exceeded.`
func (ev *LogEvent) sentError(text string) bool {
	s, ok := strings.CutPrefix(text, "task id = ")
	if !ok {
		return false
	}
	task, s, ok := cutSigned(s)
	if !ok {
		return false
	}
	message, ok := strings.CutPrefix(s, ", error: ")
	if !ok {
		return false
	}
	ev.Kind, ev.Task, ev.Detail = LogError, task, message
	if strings.HasPrefix(message, "Context size has been exceeded") {
		ev.Kind = LogContext
	}
	return true
}
