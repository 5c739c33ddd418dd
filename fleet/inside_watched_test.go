package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// closedOnce checks that every intent of the unit in the journal has one end.
func (s *service) closedOnce() {
	s.Helper()
	f, err := os.Open(filepath.Join(s.host.StateDir, "journal.jsonl"))
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	ends := map[int]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct {
			Seq              int
			Unit, Phase, Act string
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Unit != s.unit || e.Act == "outside" {
			continue
		}
		if e.Phase == "intent" {
			ends[e.Seq] += 0
		} else {
			ends[e.Seq]++
		}
	}
	for seq, n := range ends {
		if n != 1 {
			s.Errorf("intent %d has %d ends", seq, n)
		}
	}
}

// background switches with a restart and hands over how that ended.
func (s *service) background(ctx context.Context, h *fleet.Host, id string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := h.Switch(ctx, s.unit, s.pkgs[id], fleet.SwitchOptions{Restart: true, Watch: time.Minute})
		ended <- err
	}()
	return ended
}

// The owner can roll back at any moment while another command waits for the service or watches it.
func testRollbackWhileWatched(t *testing.T, in *inside) {
	s := in.start(t, "taken-over", "aaa0001")
	h := *in.host
	h.LoadDeadline = time.Minute
	for _, tt := range []struct {
		id      string
		health  string
		restart bool
	}{
		{"bbb0002", fleet.HealthOK, false},
		{"bbb0002", fleet.HealthOK, true},
		{"eee0005", fleet.HealthLoading, true}, // it never answers
	} {
		before := len(s.chain())
		ended := s.background(t.Context(), &h, tt.id)
		s.await("hrx-"+tt.id, tt.health)
		time.Sleep(200 * time.Millisecond) // it may be seen before the start job has ended; whichever it is must do
		quick := h
		quick.LockWait = 300 * time.Millisecond
		s.busy(&quick)
		quick.LockWait = 30 * time.Second // for a moment in which the other one looks; it watches for longer
		out, err := quick.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: tt.restart})
		s.do("rollback", out, err)
		if out.Armed.Package != "hrx-aaa0001" || tt.restart != (out.Health == fleet.HealthOK && out.Live.Main.Package == "hrx-aaa0001") {
			t.Errorf("rollback: %s", show(out))
		}
		err = <-ended
		if err == nil || errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "another command took over: ") ||
			!strings.Contains(err.Error(), "hrx-aaa0001 is armed") {
			t.Errorf("%s: the switch ended with %v", tt.id, err)
		}
		want := "switch aaa0001>" + tt.id + " armed, rollback " + tt.id + ">aaa0001 armed"
		if tt.restart {
			want += ", restart aaa0001>aaa0001 serves"
		}
		if got := strings.Join(s.chain()[before:], ", "); got != want {
			t.Errorf("history %s, want %s", got, want)
		}
		if got := blocks(s.status()); got != tt.id+": rolled back" && got != "bbb0002: rolled back" && !strings.HasPrefix(got, "bbb0002: rolled back; ") {
			t.Errorf("blocked: %s", got)
		}
		s.closedOnce()
		if !tt.restart {
			if _, err := h.Restart(t.Context(), s.unit, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Unblock(t.Context(), s.unit, "hrx-"+tt.id); err != nil {
			t.Fatal(err)
		}
	}
}

// busy checks that a switch waits for a watched restart, and that status leaves it alone.
func (s *service) busy(h *fleet.Host) {
	s.Helper()
	s.fails("a switch meanwhile", fleet.ErrBusy, []string{"watches a restart"}, func() (*fleet.Outcome, error) {
		return h.Switch(s.Context(), s.unit, s.pkgs["ccc0003"], fleet.SwitchOptions{})
	})
	if now := s.status(); strings.Contains(strings.Join(now.Warnings, "\n"), "cut off") {
		s.Errorf("status takes the restart for one that was cut off: %q", now.Warnings)
	}
}

func testInterrupted(t *testing.T, in *inside) {
	s := in.start(t, "interrupted", "aaa0001")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := s.background(ctx, in.host, "bbb0002")
	s.await("hrx-bbb0002", fleet.HealthOK)
	cancel()
	err := <-ended
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "hrx-bbb0002 is armed and hrx-bbb0002 runs, and nothing was taken back") {
		t.Errorf("interrupted: %v", err)
	}
	now := s.status()
	s.want(now, "bbb0002", "bbb0002", "bbb0002", false)
	if len(now.Warnings) > 0 || len(now.Blocked) > 0 {
		t.Errorf("left behind: warnings %q, blocked %v: %s", now.Warnings, now.Blocked, show(now))
	}
	s.closedOnce()
	if got := strings.Join(s.chain(), ", "); got != "switch aaa0001>bbb0002 armed" {
		t.Errorf("history %s", got)
	}
	s.want(s.rollback().Service, "aaa0001", "bbb0002", "bbb0002", true)
	s.chain()
}

// failing gives a Host whose manager hangs up when it hears a word.
func (s *service) failing(word string) *fleet.Host {
	s.Helper()
	dir, err := os.MkdirTemp(s.home, "rt")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "systemd", "private")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go relay(c, fmt.Sprintf("/run/user/%d/systemd/private", s.uid), word)
		}
	}()
	h := *s.host
	h.Connect = func(ctx context.Context) (*systemd.Manager, error) {
		return systemd.Connect(ctx, systemd.ConnectOptions{UID: s.uid, RuntimeDir: dir})
	}
	return &h
}

// relay passes everything on, until the word is heard.
func relay(c net.Conn, to, word string) {
	defer c.Close()
	up, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	defer up.Close()
	go io.Copy(c, up) //nolint:errcheck // ends with the connection
	for buffer := make([]byte, 64<<10); ; {
		n, err := c.Read(buffer)
		if err != nil || bytes.Contains(buffer[:n], []byte(word)) {
			return
		}
		if _, err := up.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// A manager that fails at the reload stops a switch, which leaves nothing behind, and no rollback.
func testReloadFails(t *testing.T, in *inside) {
	s := in.start(t, "no-reload", "aaa0001")
	h := s.failing("\x00Reload\x00")
	before := s.snapshot()
	_, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	s.want(s.status(), "aaa0001", "aaa0001", "aaa0001", false) // it has what was left loaded again, and removed
	if err == nil || s.snapshot() != before {
		t.Errorf("a first switch: %v, files %s", err, s.snapshot())
	}
	s.restartOn("bbb0002")
	before = s.snapshot()
	_, err = h.Switch(t.Context(), s.unit, in.pkgs["ccc0003"], fleet.SwitchOptions{})
	s.want(s.status(), "bbb0002", "bbb0002", "bbb0002", false)
	if err == nil || s.snapshot() != before {
		t.Errorf("a switch: %v, files %s", err, s.snapshot())
	}
	s.switchTo("ccc0003")
	// A switch that was cut off with its files in place, on top.
	path := func(name string) string { return s.path(s.unit+".d", name) }
	data, err := os.ReadFile(path(ours))
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Replace(data, []byte("Generation=2"), []byte("Generation=1"), 1)
	if err := os.WriteFile(path("zz-1bit.conf.new"), old, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	s.do("rollback", out, err)
	if !out.Changed || out.Loaded {
		t.Errorf("rollback: %s", show(out))
	}
	s.wantFiles(ours, prev)
	s.want(s.status(), "bbb0002", "bbb0002", "bbb0002", false) // it has that loaded
	s.want(s.switchTo("bbb0002").Service, "bbb0002", "bbb0002", "bbb0002", false)
	s.closedOnce()
	s.chain()
}
