package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/internal/testhost"
)

// insideVariable tells the test binary that it runs inside the test host, as the lingering user or as root, and
// holds that user's home.
const insideVariable = "ONEBIT_FLEET_INSIDE"

// packages are the packages inside, by the id that names them, and how each behaves.
var packages = map[string]string{
	"aaa0001": realengine.Plain,
	"bbb0002": realengine.Plain,
	"ccc0003": realengine.Plain,
	"ddd0004": realengine.Exits,
	"eee0005": realengine.Hangs,
	"fff0006": realengine.NaN1,
}

// TestReal runs the tests of inside_test.go: this same binary, once more, as the user and as root of a host with a
// real systemd, on packages with the real engine.
func TestReal(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		runInside(t)
		return
	}
	host, tree := testhost.Require(t), realengine.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := furnish(ctx, host, tree); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := host.Bring(self)
	if err != nil {
		t.Fatal(err)
	}
	run := "^TestReal$"
	if f := flag.Lookup("test.run"); f != nil && strings.Contains(f.Value.String(), "TestReal/") {
		run = f.Value.String()
	}
	began := time.Now()
	for user, scope := range map[string]string{host.User: "user", "root": "system"} {
		cmd := host.Command(ctx, user, program, "-test.run="+run, "-test.v", "-test.timeout=4m")
		cmd.Env = append(cmd.Env, insideVariable+"="+host.Home, "ONEBIT_CI="+os.Getenv("ONEBIT_CI"))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err = cmd.Run()
		for line := range strings.Lines(out.String()) {
			if err != nil || testing.Verbose() {
				t.Log("inside: " + strings.TrimRight(line, "\n"))
			}
		}
		if err != nil {
			t.Errorf("tests of the %s scope inside the host: %v", scope, err)
		}
		if !strings.Contains(out.String(), "--- PASS: TestReal") {
			t.Errorf("the tests of the %s scope inside the host did not run", scope)
		}
	}
	t.Logf("on %s, %.1f s inside", host.Disk, time.Since(began).Seconds())
}

// furnish puts the packages, the front end, a model and two small file systems into the user's home.
func furnish(ctx context.Context, host *testhost.Host, tree *realengine.Tree) error {
	data := filepath.Join(host.Home, ".local/share")
	units := filepath.Join(host.Home, ".config/systemd/user")
	if _, err := host.Run(ctx, host.User, "mkdir", "-p", data, units); err != nil {
		return err
	}
	copies := new(errgroup.Group)
	for id, variant := range packages {
		copies.Go(func() error { return tree.Variant(variant, host.Outside(filepath.Join(data, "1bit-hrx-"+id))) })
	}
	copies.Go(func() error {
		front, err := os.ReadFile(tree.FrontEnd())
		model, merr := os.ReadFile(tree.Model(realengine.Plain))
		return errors.Join(err, merr,
			os.WriteFile(host.Outside(filepath.Join(host.Home, "front-end")), front, 0o755),
			os.WriteFile(host.Outside(filepath.Join(host.Home, "model.gguf")), model, 0o644))
	})
	if err := copies.Wait(); err != nil {
		return err
	}
	if _, err := host.Run(ctx, "root", "chown", "-R", host.User+":", host.Home); err != nil {
		return err
	}
	// Room for a few small files in each.
	return errors.Join(
		host.MountSmall(ctx, filepath.Join(units, "full.service.d"), 48<<10),
		host.MountSmall(ctx, filepath.Join(host.Home, "full-state"), 48<<10),
	)
}
