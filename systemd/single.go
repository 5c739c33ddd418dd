package systemd

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Single is what the lines of a key amount to of which only one counts, such as Restart=.
type Single struct {
	// Value is the line that counts, in the spelling that it has; the zero Value when none
	// does, and systemd's default with it. Specifiers stand as they are.
	Value
	Hides   []Value // lines before it that would count without it, the last one foremost
	Refused []Value // lines that systemd passes over, because of their value or their section
	// Unsure says why it is not certain which line counts; "" when it is.
	Unsure string
}

// Last reads a key of which the last line counts, over all files: Last("Service", "Type"). Of
// the keys that say how a service starts and restarts it knows the old spellings, the sections
// they belong in and the values that systemd passes over, which leave the line before them in
// force. For any other key every value is taken. An empty value takes back what is before it
// where systemd has it so.
func (s *Settings) Last(section, key string) Single {
	rule, known := singles[key]
	if known = known && rule.section == section; !known {
		rule = singleRule{section: section, empty: resets}
	}
	var out Single
	for _, file := range s.files {
		for _, line := range file.Lines {
			value := Value{File: file.Path, Line: line}
			switch {
			case !rule.spells(key, line):
				if known && line.Key == key && line.Section != section {
					out.Refused = append(out.Refused, value)
				}
			case line.Value == "" && rule.empty == resets:
				if doubt := s.doubted(file.Path, line.Number); doubt != "" {
					out.Unsure = firstOf(out.Unsure, doubt)
				} else {
					out = Single{Refused: out.Refused}
				}
			case line.Value == "", rule.bad != nil && rule.bad(line.Value):
				out.Refused = append(out.Refused, value)
			default:
				if out.File != "" {
					out.Hides = slices.Insert(out.Hides, 0, out.Value)
				}
				out.Value, out.Unsure = value, s.doubted(file.Path, line.Number)
				if newer := newerValues[key+"="+line.Value]; newer != "" {
					out.Unsure = firstOf(out.Unsure, "systemd before "+newer+" passes over "+key+"="+line.Value)
				}
			}
		}
	}
	return out
}

// singleRule is what is known of a key of which one line counts.
type singleRule struct {
	section string
	also    []string                // other spellings, as Section/Key
	empty   emptyValue              // what an empty value does
	bad     func(value string) bool // systemd passes over the value; nil: it takes any
}

type emptyValue int

const (
	ignored emptyValue = iota // a line with an empty value does nothing
	resets                    // it takes back all lines before it
)

func (r singleRule) spells(key string, line Line) bool {
	return line.Section == r.section && line.Key == key || slices.Contains(r.also, line.Section+"/"+line.Key)
}

// singles are the keys that decide how a service starts, and starts again. The names that are
// no value are those of systemd 249 and later.
var singles = map[string]singleRule{
	"Type":                  {section: "Service", bad: oneOf("simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle")},
	"Restart":               {section: "Service", bad: oneOf("no", "on-success", "on-failure", "on-abnormal", "on-watchdog", "on-abort", "always")},
	"RestartSec":            {section: "Service", bad: badSpan},
	"TimeoutStartSec":       {section: "Service", bad: badSpan, also: []string{"Service/TimeoutSec"}},
	"TimeoutStopSec":        {section: "Service", bad: badSpan, also: []string{"Service/TimeoutSec"}},
	"NotifyAccess":          {section: "Service", bad: oneOf("none", "main", "exec", "all")},
	"RemainAfterExit":       {section: "Service", bad: badBool},
	"User":                  {section: "Service", empty: resets},
	"Group":                 {section: "Service", empty: resets},
	"WorkingDirectory":      {section: "Service", empty: resets, bad: badFolder},
	"BusName":               {section: "Service", empty: resets},
	"StartLimitIntervalSec": {section: "Unit", bad: badSpan, also: []string{"Unit/StartLimitInterval", "Service/StartLimitInterval"}},
	"StartLimitBurst":       {section: "Unit", bad: badNumber, also: []string{"Service/StartLimitBurst"}},
}

// newerValues are those that not every systemd from 249 on knows, with the first that does.
var newerValues = map[string]string{"Type=notify-reload": "253"}

func oneOf(names ...string) func(string) bool {
	return func(value string) bool { return !slices.Contains(names, value) }
}

func badBool(value string) bool {
	return !slices.Contains([]string{"1", "yes", "y", "true", "t", "on", "0", "no", "n", "false", "f", "off"}, strings.ToLower(value))
}

// badNumber follows safe_atou: decimal, hexadecimal, octal or binary, up to 32 bits.
func badNumber(value string) bool {
	value = strings.TrimPrefix(value, "+")
	_, err := strconv.ParseUint(value, 0, 32)
	return err != nil || strings.Contains(value, "_")
}

// badFolder is about what systemd passes over: without a "-" it refuses the rest of the file.
func badFolder(value string) bool {
	optional, ok := strings.CutPrefix(value, "-")
	return ok && optional != "~" && !path.IsAbs(optional) && !strings.HasPrefix(optional, "%")
}

// checkPlace notes a line that systemd passes over because of its section or its value.
func (m *merger) checkPlace(line Line) {
	rule, known := singles[line.Key]
	switch {
	case strings.HasPrefix(line.Section, "X-"), line.Section == "": // the reader of the file has noted the latter
	case line.Section != "Unit" && line.Section != "Service" && line.Section != "Install":
		if known || line.Key == "ExecStart" || line.Key == "Environment" {
			m.problem(false, "%s= ignored, there is no section [%s]", line.Key, line.Section)
		}
	case !known:
	case !rule.spells(line.Key, line):
		m.problem(false, "%s= ignored, it belongs into [%s]", line.Key, rule.section)
	case line.Value == "" && rule.empty == ignored, line.Value != "" && rule.bad != nil && rule.bad(line.Value):
		m.problem(false, "ignored, not a value of %s=: %s", line.Key, line.Value)
	}
}
