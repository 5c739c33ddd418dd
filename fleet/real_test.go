package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/internal/testhost"
)

// insideVariable tells the test binary that it runs inside the test host, as the lingering user or as root, and
// holds that user's home; partVariable holds which part of the tests it is to run.
const (
	insideVariable = "ONEBIT_FLEET_INSIDE"
	partVariable   = "ONEBIT_FLEET_PART"
)

// parts is into how many parts the tests of a scope are cut, and hosts how many hosts take them on. Most tests wait most
// of the time, but one manager can have only one of them: it reloads the manager and finds all of its units.
const parts, hosts = 3, 2

// packages are the packages inside, by the id that names them, and how each behaves.
var packages = map[string]string{
	"aaa0001": realengine.Plain,
	"bbb0002": realengine.Plain,
	"ccc0003": realengine.Plain,
	"ddd0004": realengine.Exits,
	"eee0005": realengine.Hangs,
	"fff0006": realengine.NaN1,
}

// TestReal runs the tests of inside_test.go: this same binary, once more, as the user and as root of hosts with a real
// systemd, on packages with the real engine.
func TestReal(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		runInside(t)
		return
	}
	first, tree := testhost.Require(t), realengine.Require(t)
	// Against a hang: with both hosts on two cores it takes two minutes, and a few times that where the machine is busy.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	todo := make(chan task, 2*parts)
	for _, user := range []string{first.User, "root"} {
		for part := range parts {
			todo <- task{user, part}
		}
	}
	close(todo)
	var group errgroup.Group
	for i := range hosts {
		group.Go(func() error {
			host := first
			if i > 0 {
				another, err := testhost.Start(ctx, testhost.Options{})
				if err != nil {
					return err
				}
				defer another.Stop() //nolint:errcheck // the end of this process would end it, too
				host = another
			}
			return runTasks(ctx, t, host, tree, todo)
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("on %s, %.1f s inside", first.Disk, time.Since(began).Seconds())
}

// task is a part of the tests of a scope: of the user or of root.
type task struct {
	user string
	part int
}

// runTasks takes tasks on in a host until there are none left.
func runTasks(ctx context.Context, t *testing.T, host *testhost.Host, tree *realengine.Tree, todo <-chan task) error {
	if err := furnish(ctx, host, tree); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := host.Bring(self)
	if err != nil {
		return err
	}
	run := "^TestReal$"
	if f := flag.Lookup("test.run"); f != nil && strings.Contains(f.Value.String(), "TestReal/") {
		run = f.Value.String()
	}
	for one := range todo {
		cmd := host.Command(ctx, one.user, program, "-test.run="+run, "-test.v", "-test.timeout=9m")
		cmd.Env = append(cmd.Env, insideVariable+"="+host.Home, partVariable+"="+strconv.Itoa(one.part), "ONEBIT_CI="+os.Getenv("ONEBIT_CI"))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err = cmd.Run()
		for line := range strings.Lines(out.String()) {
			if err != nil || testing.Verbose() {
				t.Logf("inside, %s %d: %s", one.user, one.part, strings.TrimRight(line, "\n"))
			}
		}
		if err != nil {
			t.Errorf("part %d of the tests of %s inside the host: %v", one.part, one.user, err)
		}
		if !strings.Contains(out.String(), "--- PASS: TestReal") {
			t.Errorf("part %d of the tests of %s inside the host did not run", one.part, one.user)
		}
	}
	return nil
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
