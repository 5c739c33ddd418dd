package incident

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/systemd"
)

// missingField keeps Entry.Missing, for which journalctl's objects have no place.
const missingField = "ONEBIT_MISSING"

// encodeEntries writes entries as objects of journalctl -o json, one a line.
func encodeEntries(entries []systemd.Entry) ([]byte, error) {
	var b bytes.Buffer
	for _, e := range entries {
		line, err := encodeEntry(e)
		if err != nil {
			return nil, fmt.Errorf("encode an entry of the log: %w", err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

func encodeEntry(e systemd.Entry) ([]byte, error) {
	row := map[string]any{"__REALTIME_TIMESTAMP": strconv.FormatInt(e.At.UnixMicro(), 10), "MESSAGE": bytesOf(e.Message)}
	for name, value := range e.Fields {
		row[name] = bytesOf(value)
	}
	for name, value := range map[string]string{
		"_BOOT_ID": e.Boot, "__CURSOR": e.Cursor, "MESSAGE_ID": e.ID, "SYSLOG_IDENTIFIER": e.Identifier, missingField: e.Missing,
	} {
		if value != "" {
			row[name] = bytesOf(value)
		}
	}
	if e.Monotonic > 0 {
		row["__MONOTONIC_TIMESTAMP"] = strconv.FormatInt(e.Monotonic.Microseconds(), 10)
	}
	if e.PID > 0 {
		row["_PID"] = strconv.Itoa(e.PID)
	}
	if e.Priority >= 0 {
		row["PRIORITY"] = strconv.Itoa(e.Priority)
	}
	return json.Marshal(row)
}

// bytesOf is a value as journalctl writes it: text, or a list of bytes where it is none.
func bytesOf(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	list := make([]int, len(s))
	for i := range len(s) {
		list[i] = int(s[i])
	}
	return list
}

// decodeEntry reads what encodeEntry wrote.
func decodeEntry(line []byte) (systemd.Entry, error) {
	e, err := systemd.ParseEntry(line)
	if err != nil {
		return e, err
	}
	if missing, ok := e.Fields[missingField]; ok {
		e.Missing = missing
		delete(e.Fields, missingField)
	}
	e.Raw = nil
	return e, nil
}
