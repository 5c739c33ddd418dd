package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// followFor follows until as many events came, or none for long.
func followFor(t *testing.T, root string, n int, meanwhile func()) []Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var events []Event
	done := make(chan error, 1)
	go func() {
		done <- Follow(ctx, root, func(e Event) {
			if events = append(events, e); len(events) == n {
				cancel()
			}
		})
	}()
	meanwhile()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return events
}

// A pipe stands in for /dev/kmsg: records come one by one, the reader waits for more.
func TestFollowKmsg(t *testing.T) {
	root := t.TempDir()
	write(t, root, "proc/stat", "cpu 1 2 3\nbtime 1700000000\n")
	pipe := filepath.Join(root, "dev/kmsg")
	if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o755), syscall.Mkfifo(pipe, 0o644)); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events := followFor(t, root, 2, func() {
		fmt.Fprint(log, "6,1,1000000,-;usb 1-1: reset\n SUBSYSTEM=usb\n DEVICE=c189:3\n",
			"12,2,1500000,-;amdgpu 0000:c4:00.0: GPU reset begin!\n", // a program's
			"3,3,2500000,-;amdgpu 0000:c4:00.0: ring sdma0 timeout, signaled seq=3, emitted seq=7\n SUBSYSTEM=pci\n",
			"3,4,2500001,-;amdgpu 0000:c4:00.0:  Process llama-server pid 5100 thread llama-server pid 5133\n",
			"3,5,2600000,-;amdgpu 0000:c4:00.0: GPU reset begin!. Source:  3\n")
	})
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprint(e.Kind, " ", e.PID, " ", e.At.UTC().Format("15:04:05.0")))
	}
	if diff := cmp.Diff([]string{"ring-timeout 5100 22:13:22.5", "reset 5100 22:13:22.6"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Without /dev/kmsg journalctl is asked: first whether it shows anything, then for more.
func TestFollowJournal(t *testing.T) {
	root := t.TempDir()
	script(t, root, "usr/bin/journalctl", `case "$*" in
*"-n 1 "*) echo '{"_TRANSPORT":"kernel","MESSAGE":"Linux version"}';;
*"-f -n 0 "*)
	echo '{"_TRANSPORT":"syslog","MESSAGE":"amdgpu 0000:c4:00.0: GPU reset begin!"}'
	echo '{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","MESSAGE":"amdgpu 0000:c4:00.0: GPU reset begin!"}'
	echo 'no JSON amdgpu'
	echo '{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","__REALTIME_TIMESTAMP":"1700000000500000","MESSAGE":"NVRM: Xid (PCI:0000:03:00): 31, pid=5100, name=llama-server, x"}'
	echo '{"_TRANSPORT":"kernel","MESSAGE":[97,109,100,103,112,117,58,32,86,82,65,77,32,105,115,32,108,111,115,116,255]}'
	exec sleep 60;;
esac`)
	events := followFor(t, root, 2, func() {})
	if len(events) != 2 || events[0].Kind != "xid-31" || events[0].At.UnixMilli() != 1700000000500 ||
		events[1].Kind != KindVRAMLost || !strings.HasSuffix(events[1].Text, "lost?") {
		t.Errorf("%+v", events)
	}
}

func TestFollowSaysWhatIsMissing(t *testing.T) {
	for name, journalctl := range map[string]string{"no journal": "", "one that shows nothing": "exit 0", "one that fails": "exit 1"} {
		root := t.TempDir()
		if journalctl != "" {
			script(t, root, "usr/bin/journalctl", journalctl)
		}
		err := Follow(t.Context(), root, func(Event) {})
		if !errors.Is(err, ErrNoKernelLog) || !strings.Contains(err.Error(), "dev/kmsg") || !strings.Contains(err.Error(), "systemd-journal") {
			t.Errorf("%s: %v", name, err)
		}
		if err := CanFollow(t.Context(), root); !errors.Is(err, ErrNoKernelLog) {
			t.Errorf("%s: can follow: %v", name, err)
		}
	}
	root := t.TempDir()
	script(t, root, "usr/bin/journalctl", `case "$*" in *-f*) exit 3;; *) echo x;; esac`)
	if err := Follow(t.Context(), root, func(Event) {}); err == nil || errors.Is(err, ErrNoKernelLog) || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a journal that ends: %v", err)
	}
}

// An event whose next line never comes is told all the same.
func TestFollowDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, told := make(chan logLine), make(chan Event, 9)
		go follow(lines, func(e Event) { told <- e })
		lines <- logLine{text: "amdgpu 0000:c4:00.0: ring sdma0 timeout, signaled seq=3, emitted seq=7"}
		time.Sleep(flushAfter / 2)
		lines <- logLine{text: "amdgpu 0000:c4:00.0:  Process a pid 7 thread a pid 7"}
		select {
		case e := <-told:
			t.Errorf("told too soon: %+v", e)
		default:
		}
		time.Sleep(flushAfter)
		if e := <-told; e.PID != 7 {
			t.Errorf("%+v", e)
		}
		// Nor does a stream of other lines put it off.
		lines <- logLine{text: "amdgpu 0000:c4:00.0: GPU reset begin!"}
		for range 3 {
			time.Sleep(flushAfter / 2)
			lines <- logLine{text: "amdgpu 0000:99:00.0: amdgpu: hello"}
		}
		if len(told) != 1 {
			t.Errorf("%d told", len(told))
		}
		close(lines)
		synctest.Wait()
	})
}

// Records that were overwritten before they were read are lost, the next ones are not.
func TestOverwrittenRecords(t *testing.T) {
	lines := make(chan logLine, 9)
	r := iotest.ErrReader(syscall.EPIPE)
	err := records(t.Context(), readers{&r, strings.NewReader("3,3,2500000,-;amdgpu: VRAM is lost\n")}, time.Time{}, lines)
	if !errors.Is(err, io.EOF) || len(lines) != 1 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

// readers fails once and then reads.
type readers struct {
	once *io.Reader
	then io.Reader
}

func (r readers) Read(p []byte) (int, error) {
	if first := *r.once; first != nil {
		*r.once = nil
		return first.Read(p)
	}
	return r.then.Read(p)
}

// The kernel's log of this machine can be followed and left.
func TestFollowThisHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Follow(ctx, "/", func(Event) {}); err != nil && !errors.Is(err, ErrNoKernelLog) {
		t.Error(err)
	}
}

func FuzzJournalLine(f *testing.F) {
	f.Add([]byte(`{"_TRANSPORT":"kernel","MESSAGE":[300,-1],"__REALTIME_TIMESTAMP":"x"}`))
	f.Add([]byte(`{"_TRANSPORT":"kernel","MESSAGE":"amdgpu: VRAM is lost"}`))
	f.Fuzz(func(t *testing.T, row []byte) {
		if l, ok := journalLine(row); ok {
			var r KernelReader
			r.feed(l.text, l.at)
		}
	})
}
