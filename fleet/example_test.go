package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// Switch a user service to a package that is installed, and restart it: it must load, answer soundly and stay up
// for a minute, or the service goes back.
func ExampleHost_Switch() {
	ctx, home := context.Background(), "/home/ai"
	packages := store.Open(filepath.Join(home, ".local/share"), filepath.Join(home, ".local/state/1bit"))
	h := &fleet.Host{
		Scope: systemd.ScopeUser, Store: packages, StateDir: packages.StateDir,
		UnitDir: filepath.Join(home, ".config/systemd/user"),
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{UID: os.Getuid()})
		},
		Now: time.Now, User: "ai",
	}
	pkg, err := packages.Find(ctx, "hrx-3092596")
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := h.Switch(ctx, "1bit-canonical.service", pkg, fleet.SwitchOptions{Restart: true, Watch: time.Minute})
	if err != nil {
		fmt.Println(err) // with fleet.ErrReturned: the package failed and the one before serves
		return
	}
	fmt.Printf("%s runs %s, before it ran %s\n", out.Unit, out.To, out.From)
}
