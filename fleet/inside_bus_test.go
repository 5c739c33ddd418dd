package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// However the program is started, it finds its own user's manager or stops before it changes anything.
func testWaysToBeStarted(t *testing.T, in *inside) {
	s := in.stopped(t, "ways", "aaa0001")
	own := fmt.Sprintf("/run/user/%d", in.uid)
	stale, err := os.MkdirTemp(in.home, "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(stale) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(stale, "bus"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // the socket is left and nobody listens
	for name, tt := range map[string]struct {
		runtime, bus, root string
		passed             string
		fails              bool
	}{
		"cron":        {"", "", "", "", false},
		"ssh":         {own, "", "", "", false},
		"su":          {"/run/user/0", "unix:path=/run/user/0/bus", "", "/run/user/0", false},
		"stale":       {stale, "unix:path=" + stale + "/bus", "", stale, false},
		"no linger":   {"", "", "/nowhere", "", true},
		"nobody home": {stale, "unix:path=" + stale + "/bus", "/nowhere", "", true},
	} {
		var log bytes.Buffer
		h := *in.host
		h.Connect = func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{
				UID: in.uid, RuntimeDir: tt.runtime, BusAddress: tt.bus, Root: tt.root,
				Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
		}
		if tt.fails {
			s.fails(name, systemd.ErrNoBus, []string{"loginctl enable-linger"}, func() (*fleet.Outcome, error) {
				return h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
			})
			continue
		}
		out, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{DryRun: true})
		s.do(name, out, err)
		if got := log.String(); out.Scope != systemd.ScopeUser || !strings.Contains(got, "socket="+own+"/systemd/private") || !strings.Contains(got, tt.passed) {
			t.Errorf("%s: %s, log %s", name, out.Scope, got)
		}
	}
}
