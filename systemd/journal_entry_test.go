package systemd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// journalRow is a row of journalctl with a time and these other members.
func journalRow(members string) string {
	return `{"__REALTIME_TIMESTAMP":"1792752312000001","__MONOTONIC_TIMESTAMP":"22020000001","_BOOT_ID":"b","__CURSOR":"c",` + members + "}"
}

func TestParseEntry(t *testing.T) {
	at, up := time.UnixMicro(1792752312000001), 22020000001*time.Microsecond
	tests := map[string]struct {
		row  string
		want Entry
	}{
		"text": {journalRow(`"MESSAGE":"a\tb é","PRIORITY":"3","_PID":"7","SYSLOG_IDENTIFIER":"1bit","_SYSTEMD_UNIT":"user@1000.service","_SYSTEMD_USER_UNIT":"llm.service","_SYSTEMD_INVOCATION_ID":"i"`),
			Entry{Message: "a\tb é", Priority: 3, PID: 7, Identifier: "1bit", Unit: "llm.service", Invocation: "i",
				Fields: map[string]string{"_SYSTEMD_UNIT": "user@1000.service", "_SYSTEMD_USER_UNIT": "llm.service", "_SYSTEMD_INVOCATION_ID": "i"}}},
		"numbers": {`{"__REALTIME_TIMESTAMP":1792752312000001,"__MONOTONIC_TIMESTAMP":22020000001,"_BOOT_ID":"b","__CURSOR":"c","MESSAGE":"a","PRIORITY":6,"_PID":7,"EXIT_STATUS":1}`,
			Entry{Message: "a", Priority: 6, PID: 7, Fields: map[string]string{"EXIT_STATUS": "1"}}},
		"bytes":    {journalRow(`"MESSAGE":[27,91,51,49,109,255,0]`), Entry{Message: "\x1b[31m\xff\x00", Priority: -1}},
		"empty":    {journalRow(`"MESSAGE":""`), Entry{Priority: -1}},
		"no bytes": {journalRow(`"MESSAGE":[]`), Entry{Priority: -1}},
		"null":     {journalRow(`"MESSAGE":null`), Entry{Priority: -1, Missing: "the message is too long to be read"}},
		"none":     {journalRow(`"A":"b"`), Entry{Priority: -1, Missing: "the entry has no message", Fields: map[string]string{"A": "b"}}},
		"several": {journalRow(`"MESSAGE":["a",[255,10],"b"],"A":["x",null]`),
			Entry{Message: "a\n\xff\n\nb", Priority: -1, Fields: map[string]string{"A": "x\n"}}},
		"several with null":   {journalRow(`"MESSAGE":["a",null]`), Entry{Message: "a\n", Priority: -1, Missing: "the message is too long to be read"}},
		"several, null first": {journalRow(`"MESSAGE":[null,"a"]`), Entry{Message: "\na", Priority: -1, Missing: "the message is too long to be read"}},
		"about a unit": {journalRow(`"MESSAGE":"m","MESSAGE_ID":"` + IDProcessExited + `","USER_UNIT":"llm.service","USER_INVOCATION_ID":"i","_SYSTEMD_USER_UNIT":"init.scope","_SYSTEMD_UNIT":"user@1000.service","EXIT_CODE":"exited"`),
			Entry{Message: "m", Priority: -1, ID: IDProcessExited, Unit: "llm.service", Invocation: "i", Fields: map[string]string{
				"USER_UNIT": "llm.service", "USER_INVOCATION_ID": "i", "_SYSTEMD_USER_UNIT": "init.scope", "_SYSTEMD_UNIT": "user@1000.service", "EXIT_CODE": "exited"}}},
		"values that are none": {journalRow(`"MESSAGE":"m","PRIORITY":"9","_PID":"-1"`), Entry{Message: "m", Priority: -1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseEntry([]byte(" " + test.row + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			test.want.At, test.want.Monotonic, test.want.Boot, test.want.Cursor, test.want.Raw = at, up, "b", "c", []byte(test.row)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"", "null", "[]", "-- Boot b --", `{"MESSAGE":"no time"}`, `{"__REALTIME_TIMESTAMP":"-1"}`, `{"__REALTIME_TIMESTAMP":null}`,
		journalRow(`"MESSAGE":{"a":1}`), journalRow(`"MESSAGE":true`), journalRow(`"MESSAGE":[["a"],"b"]`), journalRow(`"MESSAGE":[{}]`), journalRow(`"MESSAGE":"a`)} {
		if e, err := ParseEntry([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, e)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(journalRow(`"MESSAGE":["a",[255,10],null],"PRIORITY":6`)), []byte("\xff\x00a"))
	f.Add([]byte(journalRow(`"MESSAGE":[[],[[[1]]]]`)), []byte("plain"))
	f.Add([]byte(`{"__REALTIME_TIMESTAMP":"99999999999999999999","__MONOTONIC_TIMESTAMP":"9223372036854775807"}`), []byte{})
	f.Fuzz(func(t *testing.T, row, message []byte) {
		if e, err := ParseEntry(row); err == nil {
			again, err := ParseEntry(e.Raw)
			if diff := cmp.Diff(e, again); err != nil || diff != "" {
				t.Errorf("read again: %v\n%s", err, diff)
			}
		}
		numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(message), "[]"), " ", ",")
		e, err := ParseEntry([]byte(journalRow(`"MESSAGE":[` + numbers + `]`)))
		if err != nil || e.Message != string(message) {
			t.Errorf("%q is read as %q, %v", message, e.Message, err)
		}
		text, err := json.Marshal(string(message))
		if err != nil {
			t.Fatal(err)
		}
		if e, err = ParseEntry([]byte(journalRow(`"MESSAGE":` + string(text)))); err != nil || e.Message != strings.ToValidUTF8(string(message), "\ufffd") && len(message) == len(e.Message) {
			t.Errorf("%s is read as %q, %v", text, e.Message, err)
		}
	})
}
