package systemd

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// insideVariable tells a test binary that it runs in a test host.
const insideVariable = "ONEBIT_TEST_INSIDE"

// inside says whether the test runs under the real systemd of a test host. Outside it, it has
// the test run there by itself, as the host's user or as root, and hands on how that ends.
func inside(t *testing.T, asRoot bool) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return true
	}
	host := testhost.Require(t)
	program, err := bring(host)
	if err != nil {
		t.Fatal(err)
	}
	user := host.User
	if asRoot {
		user = "root"
	}
	cmd := host.Command(t.Context(), user, program, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(cmd.Env, insideVariable+"=1", "SEED="+os.Getenv("SEED"))
	out, err := cmd.CombinedOutput()
	t.Logf("inside, as %s:\n%s", user, out)
	if err != nil {
		t.Fatalf("inside, as %s: %v", user, err)
	}
	return false
}

// bring copies the test binary into the host, once.
func bring(host *testhost.Host) (string, error) {
	broughtOnce.Do(func() {
		var program string
		if program, broughtErr = os.Executable(); broughtErr == nil {
			brought, broughtErr = host.Bring(program)
		}
	})
	return brought, broughtErr
}

var (
	broughtOnce sync.Once
	brought     string
	broughtErr  error
)

// connectHere connects to the manager of the user that the test runs as.
func connectHere(t *testing.T) *Manager {
	t.Helper()
	opts := ConnectOptions{Scope: ScopeUser, UID: os.Getuid(), RuntimeDir: os.Getenv("XDG_RUNTIME_DIR")}
	if os.Getuid() == 0 {
		opts = ConnectOptions{Scope: ScopeSystem}
	}
	m, err := Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// userUnitDir is the folder of the user's own unit files, made when it is missing.
func userUnitDir(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, ".config", "systemd", "user")
	if os.Getuid() == 0 {
		dir = "/etc/systemd/system"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeFile writes a file with its folders.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// seed is the seed of a test with generated input; SEED in the environment repeats one.
func seed(t *testing.T) uint64 {
	t.Helper()
	value := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if value, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d", value)
	return value
}

// limited is the context of a test that talks to systemd.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
