package incident

import (
	"fmt"

	"github.com/1bit-systems/pkg/systemd"
)

// A ring keeps the last entries that it was given, no more than so many and no more bytes than keepBytes.
type ring struct {
	most    int
	kept    []systemd.Entry
	bytes   int
	dropped int
}

func newRing(most int) *ring { return &ring{most: most} }

func (r *ring) add(e systemd.Entry) error {
	r.kept = append(r.kept, e)
	r.bytes += size(e)
	for len(r.kept) > r.most || r.bytes > keepBytes && len(r.kept) > 1 {
		r.bytes -= size(r.kept[0])
		r.kept[0] = systemd.Entry{}
		r.kept = r.kept[1:]
		r.dropped++
	}
	return nil
}

func (r *ring) entries() []systemd.Entry { return r.kept }

func (r *ring) into(kept map[string]systemd.Entry) {
	for _, e := range r.kept {
		kept[e.Cursor] = e
	}
}

// size is roughly what an entry takes, in bytes.
func size(e systemd.Entry) int {
	n := 256 + len(e.Message)
	for _, value := range e.Fields {
		n += len(value)
	}
	return n
}

// entryFields are the fields of an entry that are kept. The others tell nothing of an end, or more than they should: a
// core dump has the whole environment of its process.
var entryFields = map[string]bool{
	"USER_UNIT": true, "USER_INVOCATION_ID": true, "UNIT": true, "INVOCATION_ID": true,
	"_SYSTEMD_USER_UNIT": true, "_SYSTEMD_UNIT": true, "_SYSTEMD_INVOCATION_ID": true,
	"OBJECT_SYSTEMD_USER_UNIT": true, "OBJECT_SYSTEMD_UNIT": true, "OBJECT_SYSTEMD_INVOCATION_ID": true, "OBJECT_PID": true,
	"EXIT_CODE": true, "EXIT_STATUS": true, "COMMAND": true, "UNIT_RESULT": true, "N_RESTARTS": true,
	"JOB_TYPE": true, "JOB_RESULT": true, "N_DROPPED": true, "EXECUTABLE": true, "ERRNO": true,
	"CPU_USAGE_NSEC": true, "MEMORY_PEAK": true, "MEMORY_SWAP_PEAK": true,
	"COREDUMP_PID": true, "COREDUMP_SIGNAL": true, "COREDUMP_SIGNAL_NAME": true, "COREDUMP_EXE": true, "COREDUMP_COMM": true,
	"COREDUMP_CMDLINE": true, "COREDUMP_UNIT": true, "COREDUMP_USER_UNIT": true, "COREDUMP_FILENAME": true, "COREDUMP_TIMESTAMP": true,
	"_EXE": true, "_COMM": true, "_CMDLINE": true, "_UID": true, "_TRANSPORT": true, "SYSLOG_FACILITY": true,
}

// maxField bounds a field, in bytes.
const maxField = 4 << 10

// slim leaves out of an entry what is not kept. n stands for a cursor where there is none.
func slim(e systemd.Entry, n int) systemd.Entry {
	fields := map[string]string{}
	for name, value := range e.Fields {
		if entryFields[name] {
			fields[name] = value[:min(len(value), maxField)]
		}
	}
	e.Fields, e.Raw = fields, nil
	if len(e.Message) > maxMessage {
		e.Missing = fmt.Sprintf("the message has %d bytes, of which the first %d are kept", len(e.Message), maxMessage)
		e.Message = e.Message[:maxMessage]
	}
	if e.Cursor == "" {
		e.Cursor = fmt.Sprintf("%d/%d", e.At.UnixMicro(), n)
	}
	return e
}
