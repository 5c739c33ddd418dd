package engine

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

var (
	reColour  = lazyregexp.New("\x1b\\[[0-9;]*[A-Za-z]")
	rePrefix  = lazyregexp.New(`^(?:\[(\d+)\] )?(?:(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) ([A-Z]) )?`)
	reSlot    = lazyregexp.New(`^slot\s+\S+: id\s+(\d+) \| task (-?\d+) \|\s*(.*)$`)
	reLRU     = lazyregexp.New(`(?i)^selected slot by lru(?:, n_tokens = \d+)?, t_last = (-?\d+)`)
	reLCP     = lazyregexp.New(`^selected slot by (?:LCP|lcs) similarity`)
	reByID    = lazyregexp.New(`^selected slot by id \(`)
	reLaunch  = lazyregexp.New(`^processing task(?:, is_child = \d)?$`)
	reRelease = lazyregexp.New(`^stop processing: n_(?:past|tokens) = (\d+)(?:, truncated = (\d))?`)
	reTiming  = lazyregexp.New(`^\s*(?:prompt eval time|eval time|total time)\s+=\s+[0-9.]+ ms /\s+\d+ tokens`)
	reStartup = lazyregexp.New(`^srv\s+\S+: initializing(?: slots)?, n_slots = (\d+)(?:, n_ctx_slot = \d+)?(?:, kv_unified = '(\w+)')?`)
	reError   = lazyregexp.New(`^srv\s+send_error: task id = (-?\d+), error: (.*)$`)
	reNaN2    = lazyregexp.New(`^(?:\w+: )?HRX returned NaN logits: count=(\d+) of (\d+)(?:, index range \[(-?\d+)\.\.(-?\d+)\], contiguous=(yes|no), continuing=(yes|no))?`)
	reNaN1    = lazyregexp.New(`^(?:\w+: )?HRX returned NaN logits at vocab index (\d+)`)
	reNaN0    = lazyregexp.New(`^(?:\w+: )?HRX returned NaN logits`)
	reAbort   = lazyregexp.New(`^\S+\.(?:c|cc|cpp|cu|cuh|h|hpp|m|mm):\d+: \S`)
	reThrow   = lazyregexp.New(`^(?:terminate called |=+ Failed to sample token)`)
	reSample  = lazyregexp.New(`^\s*candidates->size: \d+, max = (\S+), sump = (\S+)$`)
	reAlloc   = lazyregexp.New(`hrx_allocator_allocate_buffer|allocate HRX host staging buffer|failed to allocate \S*\s?(?:compute )?buffer|unable to allocate \S+ buffer|cudaMalloc failed: out of memory|ErrorOutOfDeviceMemory`)
	reDevice  = lazyregexp.New(`HSA_STATUS_ERROR|\bQueue error\b|wait for HRX graph replay commands failed`)
	reBind    = lazyregexp.New(`^(?:\S+\s+\S+: )?couldn't bind (?:HTTP )?server socket`)
)

// ParseLogLine reads one line of a llama-server log: with or without a router's
// [port], time and level, terminal colours or a carriage return; also the JSON
// lines of 2024. It reports false for a line that says nothing of interest.
func ParseLogLine(line string) (LogEvent, bool) {
	ev := LogEvent{Slot: -1, Task: -1}
	if strings.IndexByte(line, 0x1b) >= 0 {
		line = reColour().ReplaceAllString(line, "")
	}
	line = strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(line, "{") {
		return parseJSONLine(line)
	}
	m := rePrefix().FindStringSubmatch(line)
	text := line[len(m[0]):]
	ev.Router = atoi(m[1])
	if m[6] != "" {
		ev.Timed, ev.Level = true, m[6][0]
		ev.Time = time.Duration(atoi(m[2]))*time.Minute + time.Duration(atoi(m[3]))*time.Second +
			time.Duration(atoi(m[4]))*time.Millisecond + time.Duration(atoi(m[5]))*time.Microsecond
	}
	ev.Detail = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "slot "):
		return ev.slotLine(text)
	case strings.HasPrefix(text, "srv "):
		if e, ok := ev.serverLine(text); ok {
			return e, true
		}
	}
	return ev.otherLine(text)
}

// slotLine reads what one slot says.
func (ev LogEvent) slotLine(text string) (LogEvent, bool) {
	m := reSlot().FindStringSubmatch(text)
	if m == nil {
		return ev, false
	}
	ev.Slot, ev.Task = atoi(m[1]), atoi(m[2])
	return ev.slotText(m[3])
}

func (ev LogEvent) slotText(text string) (LogEvent, bool) {
	if strings.HasPrefix(text, "selected slot by ") {
		ev.Kind = LogSelected
		if m := reLRU().FindStringSubmatch(text); m != nil {
			ev.How, ev.NeverUsed = SelectedLRU, m[1] == "-1"
			return ev, true
		}
		if reLCP().MatchString(text) {
			ev.How = SelectedLCP
			return ev, true
		}
		if reByID().MatchString(text) {
			ev.How = SelectedID
			return ev, true
		}
		return ev, false
	}
	if reLaunch().MatchString(text) {
		ev.Kind = LogLaunch
		return ev, true
	}
	if m := reRelease().FindStringSubmatch(text); m != nil {
		ev.Kind, ev.Tokens, ev.Truncated = LogRelease, atoi(m[1]), m[2] == "1"
		return ev, true
	}
	if reTiming().MatchString(text) {
		ev.Kind = LogTiming
		return ev, true
	}
	return ev, false
}

// serverLine reads what the server says of itself and of the whole.
func (ev LogEvent) serverLine(text string) (LogEvent, bool) {
	if m := reStartup().FindStringSubmatch(text); m != nil {
		ev.Kind, ev.Slots, ev.KVUnified = LogStartup, atoi(m[1]), m[2] == "true"
		return ev, true
	}
	if m := reError().FindStringSubmatch(text); m != nil && strings.HasPrefix(m[2], "Context size has been exceeded") {
		ev.Kind, ev.Task = LogContext, atoi(m[1])
		return ev, true
	}
	return ev, false
}

// otherLine reads the lines of libraries. Those that are only told by words are
// believed at the levels of an error or a warning, or without a level: prompts
// and model names come as information.
func (ev LogEvent) otherLine(text string) (LogEvent, bool) {
	if g := parseNaN(text); g != nil {
		ev.Kind, ev.NaN = LogNaN, g
		return ev, true
	}
	if ev.Level == 'I' || ev.Level == 'D' || ev.Level == 'T' {
		return ev, false
	}
	switch {
	case reBind().MatchString(text):
		ev.Kind = LogBind
	case reAlloc().MatchString(text):
		ev.Kind = LogAlloc
	case reDevice().MatchString(text):
		ev.Kind = LogDevice
	case reAbort().MatchString(text):
		ev.Kind, ev.NaNAbort = LogAbort, strings.Contains(text, "NaN logits")
	case reThrow().MatchString(text):
		ev.Kind = LogAbort
	case ev.Level == 0 && reTiming().MatchString(text):
		ev.Kind = LogTiming // the bare continuation lines of 2025
	default:
		m := reSample().FindStringSubmatch(text)
		if m == nil {
			return ev, false
		}
		ev.Kind, ev.NaNAbort = LogAbort, strings.Contains(m[1]+m[2], "nan")
	}
	return ev, true
}

func parseNaN(text string) *NaNGuard {
	if !strings.Contains(text, "HRX returned NaN logits") {
		return nil
	}
	if m := reNaN2().FindStringSubmatch(text); m != nil {
		return &NaNGuard{Count: atoi(m[1]), Of: atoi(m[2]), First: atoi(m[3]), Last: atoi(m[4]),
			Contiguous: m[5] == "yes", Continuing: m[6] == "yes"}
	}
	if m := reNaN1().FindStringSubmatch(text); m != nil {
		i := atoi(m[1])
		return &NaNGuard{Count: 1, First: i, Last: i, Contiguous: true}
	}
	if reNaN0().MatchString(text) {
		return &NaNGuard{}
	}
	return nil
}

// parseJSONLine reads the log lines of early 2024.
func parseJSONLine(line string) (LogEvent, bool) {
	ev := LogEvent{Slot: -1, Task: -1}
	var in struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
		Slot  *int   `json:"slot_id"`
		Task  *int   `json:"task_id"`
	}
	if json.Unmarshal([]byte(line), &in) != nil || in.Msg == "" {
		return ev, false
	}
	if in.Level != "" {
		ev.Level = in.Level[0]
	}
	ev.Detail = in.Msg
	if in.Slot == nil {
		return ev.otherLine(in.Msg)
	}
	ev.Slot = *in.Slot
	if in.Task != nil {
		ev.Task = *in.Task
	}
	return ev.slotText(in.Msg)
}

// atoi reads digits that a pattern has matched; what does not fit is 0.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
