package systemd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is one entry of the journal. What it has not is empty.
type Entry struct {
	At         time.Time // by the clock of the host
	Boot       string    // 32 hexadecimal digits
	Monotonic  time.Duration
	Cursor     string
	Message    string // the bytes as they were written, which need not be UTF-8
	Missing    string // why there is no message, or not all of it: such as that it was too long to be kept
	ID         string // MESSAGE_ID, 32 hexadecimal digits: one of the ID constants, or another
	Unit       string // that it is from, or, of an entry of systemd's, that it is about
	Invocation string // of that unit, 32 hexadecimal digits
	Identifier string // SYSLOG_IDENTIFIER
	PID        int
	Priority   int               // 0 emerg … 7 debug; -1: none
	Fields     map[string]string // the others that a reader asks for: EXIT_CODE, EXIT_STATUS, UNIT_RESULT, N_RESTARTS, CPU_USAGE_NSEC, JOB_RESULT, N_DROPPED …
	Raw        []byte            // the object as journalctl wrote it
}

// ParseEntry reads one object of journalctl -o json. Its values are strings, lists of bytes where the value is not plain
// text, null where it was too long, or a list of those where the entry has the field several times.
func ParseEntry(line []byte) (Entry, error) {
	line = bytes.TrimSpace(line)
	var row map[string]json.RawMessage
	if err := json.Unmarshal(line, &row); err != nil {
		return Entry{}, fmt.Errorf("read an entry of the journal: %w", err)
	}
	if row == nil {
		return Entry{}, errors.New("read an entry of the journal: it is no object")
	}
	e := Entry{Priority: -1, Fields: map[string]string{}, Raw: bytes.Clone(line)}
	long := map[string]bool{}
	for name, raw := range row {
		value, whole, err := fieldValue(raw)
		if err != nil {
			return Entry{}, fmt.Errorf("read an entry of the journal: %s: %w", name, err)
		}
		e.Fields[name], long[name] = value, !whole
	}
	return e, e.settle(long)
}

// fieldValue reads the value of a field. whole is false where some or all of it is missing.
func fieldValue(raw json.RawMessage) (value string, whole bool, err error) {
	switch raw[0] {
	case 'n':
		return "", false, nil
	case '"':
		if plain := raw[1 : len(raw)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
			return string(plain), true, nil // as nearly all are
		}
		err := json.Unmarshal(raw, &value)
		return value, true, err
	case '[':
		return listValue(raw)
	case '{', 't', 'f':
		return "", false, errors.New("neither text nor bytes")
	}
	return string(raw), true, nil // a number
}

// listValue reads a list of bytes, or of several values, which become lines.
func listValue(raw json.RawMessage) (value string, whole bool, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", false, err
	}
	text := make([]byte, 0, len(list))
	for _, one := range list {
		b, err := strconv.ParseUint(string(one), 10, 8)
		if err != nil {
			text = nil
			break
		}
		text = append(text, byte(b))
	}
	if text != nil {
		return string(text), true, nil
	}
	whole = true
	var values []string
	for _, one := range list {
		if one[0] == '[' && bytes.ContainsAny(one[1:], "[\"n") {
			return "", false, errors.New("a list of lists of lists")
		}
		v, ok, err := fieldValue(one)
		if err != nil {
			return "", false, err
		}
		values, whole = append(values, v), whole && ok
	}
	return strings.Join(values, "\n"), whole, nil
}

// settle moves what has a place of its own there from the fields.
func (e *Entry) settle(long map[string]bool) error {
	take := func(name string) string {
		value := e.Fields[name]
		delete(e.Fields, name)
		return value
	}
	at, err := strconv.ParseInt(take("__REALTIME_TIMESTAMP"), 10, 64)
	if err != nil || at < 0 {
		return errors.New("read an entry of the journal: it has no time")
	}
	e.At = time.UnixMicro(at)
	if us, err := strconv.ParseInt(take("__MONOTONIC_TIMESTAMP"), 10, 64); err == nil && us >= 0 && us < math.MaxInt64/1000 {
		e.Monotonic = time.Duration(us) * time.Microsecond
	}
	_, told := e.Fields["MESSAGE"]
	switch {
	case !told:
		e.Missing = "the entry has no message"
	case long["MESSAGE"]:
		e.Missing = "the message is too long to be read"
	}
	e.Message = take("MESSAGE")
	e.Boot, e.Cursor, e.ID = take("_BOOT_ID"), take("__CURSOR"), take("MESSAGE_ID")
	e.Identifier = take("SYSLOG_IDENTIFIER")
	if n, err := strconv.Atoi(take("_PID")); err == nil && n > 0 {
		e.PID = n
	}
	if n, err := strconv.Atoi(take("PRIORITY")); err == nil && n >= 0 && n <= 7 {
		e.Priority = n
	}
	e.Unit, e.Invocation = e.about()
	return nil
}

// about tells which unit an entry is about, or from, and in which run of it. A process of a user's unit counts as
// one of user@UID.service too, so the unit of the user comes first.
func (e *Entry) about() (unit, invocation string) {
	for _, names := range [][2]string{
		{"USER_UNIT", "USER_INVOCATION_ID"}, {"UNIT", "INVOCATION_ID"},
		{"COREDUMP_USER_UNIT", ""}, {"COREDUMP_UNIT", ""},
		{"OBJECT_SYSTEMD_USER_UNIT", "OBJECT_SYSTEMD_INVOCATION_ID"}, {"OBJECT_SYSTEMD_UNIT", "OBJECT_SYSTEMD_INVOCATION_ID"},
		{"_SYSTEMD_USER_UNIT", "_SYSTEMD_INVOCATION_ID"}, {"_SYSTEMD_UNIT", "_SYSTEMD_INVOCATION_ID"},
	} {
		if unit := e.Fields[names[0]]; unit != "" {
			return unit, e.Fields[names[1]]
		}
	}
	return "", ""
}
