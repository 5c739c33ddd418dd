package acceptance

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

// A log that grows faster than it is read does not hold up who reads it.
func TestLogThatGrowsWhileItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), ServerLogName)
	more := bytes.Repeat([]byte("srv  update_slots: all slots are idle\n"), 1000)
	reads := 0
	write := func() int64 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer f.Close()
		if reads++; reads > 100 {
			t.Fatal("it is still being read")
		}
		f.Write(more)
		return 0
	}
	write()
	w := newLogWatch(path, 4, write, func(engine.LogEvent, bool) {})
	if err := w.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	size, unread, err := w.unread()
	if want := int64(len(more)); err != nil || size != 3*want || unread != want {
		t.Errorf("%d of %d bytes are unread, %v, want those %d that were written meanwhile", unread, size, err, want)
	}
}

// What a server writes once it is told to end is told apart, to the byte.
func TestLogOfTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), ServerLogName)
	write := func(line string) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.WriteString(line + "\n")
	}
	type told struct {
		Kind   engine.LogKind
		Ending bool
	}
	var got []told
	w := newLogWatch(path, 4, func() int64 { return 0 }, func(ev engine.LogEvent, ending bool) { got = append(got, told{ev.Kind, ending}) })
	write("srv  start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1")
	if err := w.ending(); err != nil {
		t.Fatal(err)
	}
	write("terminate called without an active exception")
	if err := w.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]told{{engine.LogBind, false}, {engine.LogAbort, true}}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
