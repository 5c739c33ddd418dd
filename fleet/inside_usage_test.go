package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// testStoppedInstance stops an instance of a template, which the manager then neither has loaded nor finds a file
// for, and asks for its packages: with the manager, without one, and to remove them.
func testStoppedInstance(t *testing.T, in *inside) {
	const unit = "stopped@one.service"
	s := &service{T: t, inside: in, unit: unit}
	s.write("stopped@.service", fmt.Sprintf(
		"[Service]\nExecStart=%%h/front-end serve -m %%h/model.gguf --port %d --parallel 2 --threads 1\n", freePort(t)))
	s.write(unit+".d/hrx.conf", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=%h/.local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server\n")
	t.Cleanup(func() {
		ctx := context.Background()
		_, err := in.m.Stop(ctx, unit)
		err = errors.Join(err, os.Chmod(s.path(unit+".d"), 0o755), os.RemoveAll(s.path(unit+".d")), os.Remove(s.path("stopped@.service")))
		if err := errors.Join(err, in.m.Reload(ctx)); err != nil {
			t.Error(err)
		}
	})
	s.reload()
	s.switchTo("bbb0002")
	if result, err := in.m.Start(t.Context(), unit); err != nil || result != "done" {
		t.Fatalf("start: %s, %v", result, err)
	}
	s.await("hrx-bbb0002", fleet.HealthOK)
	s.switchTo("ccc0003")
	if _, err := in.m.Stop(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	s.awaitForgotten()

	found, err := in.host.Status(t.Context())
	if err != nil || !slices.ContainsFunc(found, func(one fleet.Service) bool {
		return one.Unit == unit && one.Armed != nil && one.Armed.Package == "hrx-ccc0003" && one.ServedBefore != nil
	}) {
		t.Errorf("services %s, %v", show(found), err)
	}
	off := *in.host
	off.Connect = func(ctx context.Context) (*systemd.Manager, error) {
		return systemd.Connect(ctx, systemd.ConnectOptions{UID: in.uid, Root: "/nowhere"})
	}
	named, disk := "named in "+s.path(unit+".d", "hrx.conf"), "on disk for "+unit
	before, back := "served before in "+unit, "what a rollback goes to in "+unit
	uses := func(h *fleet.Host, want map[string][]string) {
		t.Helper()
		for id, reasons := range want {
			got, err := h.UsedBy(t.Context(), in.pkgs[id])
			slices.Sort(got)
			if err != nil || !slices.Equal(got, reasons) {
				t.Errorf("%s is used by %q, want %q (%v)", id, got, reasons, err)
			}
			if len(reasons) == 0 {
				continue
			}
			if err := h.Store.Remove(t.Context(), in.pkgs[id], h.UsedBy); !errors.Is(err, store.ErrInUse) {
				t.Fatalf("remove %s: %v", id, err)
			}
		}
	}
	uses(in.host, map[string][]string{
		"aaa0001": {named}, "bbb0002": {before, back}, "ccc0003": {"armed in " + unit, disk}, "ddd0004": nil,
	})
	uses(&off, map[string][]string{
		"aaa0001": {named}, "bbb0002": {before, back}, "ccc0003": {disk}, "ddd0004": nil,
	})

	// What was rolled back from is needed by the undo.
	s.rollback()
	uses(&off, map[string][]string{"aaa0001": {named}, "bbb0002": {disk, before}, "ccc0003": {"what rollback --undo returns to in " + unit}})

	// A folder that cannot be read may need anything.
	if err := os.Chmod(s.path(unit+".d"), 0); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*fleet.Host{in.host, &off} {
		if err := h.Store.Remove(t.Context(), in.pkgs["ddd0004"], h.UsedBy); !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("remove with an unreadable folder: %v", err)
		}
	}
}

// awaitForgotten waits until the manager has unloaded the unit.
func (s *service) awaitForgotten() {
	s.Helper()
	_ = s.m.ResetFailed(s.Context(), s.unit) // an error when it is forgotten already
	if !soon(func() bool {
		all, err := s.m.Services(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		return !slices.Contains(all, s.unit)
	}) {
		s.Fatal("the manager keeps the stopped instance loaded")
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
