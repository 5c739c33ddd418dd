package systemd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// piece is a row of a stream of output; more says that journald split the line there.
func piece(stream, message string, more bool, pid int) string {
	members := fmt.Sprintf(`"MESSAGE":%q,"_TRANSPORT":"stdout","_STREAM_ID":%q,"_PID":"%d"`, message, stream, pid)
	if more {
		members += `,"_LINE_BREAK":"line-max"`
	}
	return journalRow(members) + "\n"
}

// readRows reads rows and gives what is in them: messages, with why they are not whole.
func readRows(t *testing.T, rows string) (said, gaps []string) {
	t.Helper()
	gaps, err := ReadEntries(iotest.HalfReader(strings.NewReader(rows)), func(e Entry) error {
		text := e.Message
		if e.Missing != "" {
			text += " (" + e.Missing + ")"
		}
		said = append(said, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said, gaps
}

func TestReadEntries(t *testing.T) {
	const lost = "1 message is missing or not whole, the last for this: the end of the line: "
	suppressed := journalRow(`"MESSAGE":"Suppressed 7 messages from llm.service","MESSAGE_ID":"`+IDSuppressed+`","N_DROPPED":"7"`) + "\n"
	tests := map[string]struct {
		rows       string
		want, gaps []string
	}{
		"nothing":         {"", nil, nil},
		"one, not ended":  {strings.TrimSpace(piece("a", "x", false, 1)), []string{"x"}, nil},
		"with a boundary": {"-- Boot b --\n\n" + piece("a", "x", false, 1), []string{"x"}, []string{"1 row could not be read, the last for this: read an entry of the journal: invalid character '-' in numeric literal"}},
		"cut off":         {piece("a", "x", false, 1) + `{"MESSAGE":"y`, []string{"x"}, []string{"1 row could not be read, the last for this: read an entry of the journal: unexpected end of JSON input"}},
		"split":           {piece("a", "x", true, 1) + piece("b", "between", false, 2) + piece("a", "y", true, 1) + piece("a", "z", false, 1) + piece("a", "next", false, 1), []string{"between", "xyz", "next"}, nil},
		"two split":       {piece("a", "x", true, 1) + piece("b", "u", true, 2) + piece("a", "y", false, 1) + piece("b", "v", false, 2), []string{"xy", "uv"}, nil},
		"no rest":         {piece("a", "x", true, 1), []string{"x (the end of the line: it is not there)"}, []string{lost + "it is not there"}},
		"another process": {piece("a", "x", true, 1) + piece("a", "y", false, 2),
			[]string{"x (the end of the line: its process wrote no more of it)", "y"}, []string{lost + "its process wrote no more of it"}},
		"dropped between": {piece("a", "x", true, 1) + suppressed + piece("a", "z", false, 1),
			[]string{"x (the end of the line: messages were dropped while it was written)", "Suppressed 7 messages from llm.service", "z"},
			[]string{"journald dropped 7 messages of llm.service, which wrote too many at a time (RateLimitBurst= in journald.conf), at 2026-10-23 10:45:12Z",
				lost + "messages were dropped while it was written"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			said, gaps := readRows(t, test.rows)
			if diff := cmp.Diff(test.want, said); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.gaps, gaps); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
		})
	}
}

// What is kept of the entries is read again as they were.
func TestReadEntriesAgain(t *testing.T) {
	rows := piece("a", strings.Repeat("x", 48<<10), true, 1) + piece("b", "between", false, 2) + piece("a", "y", false, 1)
	keep := func(in string) (entries []Entry, raw string) {
		_, err := ReadEntries(strings.NewReader(in), func(e Entry) error {
			entries, raw = append(entries, e), raw+string(e.Raw)+"\n"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return entries, raw
	}
	entries, raw := keep(rows)
	again, _ := keep(raw)
	if diff := cmp.Diff(entries, again); diff != "" || len(entries) != 2 {
		t.Errorf("-first +again:\n%s", diff)
	}
}

func TestReadEntriesStops(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	_, err := ReadEntries(strings.NewReader(strings.Repeat(piece("a", "x", false, 1), 3)), func(Entry) error { n++; return stop })
	if n != 1 || !errors.Is(err, stop) {
		t.Errorf("%d entries, %v", n, err)
	}
	_, err = ReadEntries(iotest.ErrReader(stop), func(Entry) error { return nil })
	if !errors.Is(err, stop) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// What is held of hostile rows is bounded, and all else of them is told.
func TestReadEntriesBounded(t *testing.T) {
	long := strings.Repeat("x", maxJournalValue)
	said, gaps := readRows(t, journalRow(`"MESSAGE":"`+long+`","A":"{\"]"`)+"\n"+
		journalRow(`"A":[`+strings.Repeat("1,", maxJournalValue)+`1],"MESSAGE":"short"`)+"\n"+
		journalRow(strings.Repeat(`"k":1,`, maxJournalRow/6)+`"MESSAGE":"never"`)+"\n"+piece("a", "next", false, 1))
	if diff := cmp.Diff([]string{" (the message is too long to be read)", "short", "next"}, said); diff != "" || len(gaps) != 2 {
		t.Errorf("-want +got:\n%s\n%q", diff, gaps)
	}
	rows := strings.Repeat(piece("a", strings.Repeat("x", 48<<10), true, 1), 30) + piece("a", "end", false, 1)
	said, _ = readRows(t, rows)
	left := fmt.Sprintf(" (the line is longer than 1 MiB: %d bytes are left out)", 30*48<<10+3-maxJoined)
	if len(said) != 1 || said[0] != strings.Repeat("x", maxJoined)+left {
		t.Errorf("%d lines, the first of %d bytes", len(said), len(said[0]))
	}
	var many strings.Builder
	for i := range maxSplitLines + 1 {
		many.WriteString(piece(strconv.Itoa(i), "x", true, 1))
	}
	said, _ = readRows(t, many.String())
	if len(said) != maxSplitLines+1 || said[0] != "x (the end of the line: too many long lines were written at a time)" {
		t.Errorf("%q", said)
	}
}

func FuzzReadEntries(f *testing.F) {
	f.Add([]byte(piece("a", "x", true, 1) + piece("a", "y", false, 1)))
	f.Add([]byte(`{"a":[1,"]}",{"b":"\\\""}],"c":null,"__REALTIME_TIMESTAMP":"1"}` + "\n\n{"))
	f.Add([]byte(`{"a":"\\","b":"}"}`))
	f.Fuzz(func(t *testing.T, rows []byte) {
		held := 0
		if _, err := ReadEntries(bytes.NewReader(rows), func(e Entry) error {
			held += len(e.Message)
			return nil
		}); err != nil {
			t.Errorf("%v", err)
		}
		if held > len(rows) {
			t.Errorf("%d bytes of messages of %d", held, len(rows))
		}
		// A row that is short passes the bounds unchanged.
		var object map[string]any
		if row, _, _ := bytes.Cut(rows, []byte("\n")); json.Unmarshal(row, &object) == nil {
			var s shortener
			s.take(row)
			if !bytes.Equal(s.out, row) || s.depth != 0 || s.quoted {
				t.Errorf("%s becomes %s, depth %d", row, s.out, s.depth)
			}
		}
	})
}
