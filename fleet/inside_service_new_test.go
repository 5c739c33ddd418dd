package fleet_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

// A unit that was made here starts, switches, restarts and rolls back like one that a person wrote.
func testServiceNew(t *testing.T, in *inside) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, inside: in, unit: "made-new.service", port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	n := fleet.NewService{Name: "made-new", Package: in.pkgs["aaa0001"], Program: "1bit", Args: []string{
		"serve", "-m", filepath.Join(in.home, "model.gguf"), "--port", strconv.Itoa(s.port), "--parallel", "2", "--threads", "1",
	}}
	made, err := in.host.NewService(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_, err := in.m.Stop(ctx, s.unit)
		if err := errors.Join(err, os.Remove(made.Path), os.RemoveAll(s.path(s.unit+".d")), in.m.Reload(ctx)); err != nil {
			t.Error(err)
		}
	})
	if _, err := in.host.NewService(t.Context(), n); !errors.Is(err, fleet.ErrRefused) {
		t.Errorf("the same once more: %v", err)
	}
	s.reload()
	if result, err := in.m.Start(t.Context(), s.unit); err != nil || result != "done" {
		t.Fatalf("start: %s, %v", result, err)
	}
	s.want(s.await("hrx-aaa0001", fleet.HealthOK), "aaa0001", "aaa0001", "aaa0001", false)
	out := s.restartOn("bbb0002")
	s.want(out.Service, "bbb0002", "bbb0002", "bbb0002", false)
	back, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true, Watch: 100 * time.Millisecond})
	s.do("rollback with restart", back, err)
	s.want(back.Service, "aaa0001", "aaa0001", "aaa0001", false)
	s.wantFiles(prev)
}
