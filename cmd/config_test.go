package cmd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/1bit-systems/pkg/fleet"
)

// policyApp is an app whose own configuration file and --config file hold these texts; "" means no file.
func policyApp(t *testing.T, own, other string) *app {
	t.Helper()
	home := t.TempDir()
	a := &app{stdin: strings.NewReader("y\n"), stderr: io.Discard, uid: 1000, getenv: func(name string) string {
		return map[string]string{"HOME": home, "ONEBIT_PKG_RESTART": "free"}[name]
	}}
	for path, text := range map[string]string{filepath.Join(home, ".config/1bit/config.yaml"): own, filepath.Join(home, "other.yaml"): other} {
		if text == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if other != "" {
		a.flags.config = filepath.Join(home, "other.yaml")
	}
	return a
}

func TestPolicyIsTheOwners(t *testing.T) {
	for _, test := range []struct{ name, own, other, want string }{
		{"default", "", "", "confirm"},
		{"own", "restart: free", "", "free"},
		{"other alone", "", "restart: free", "confirm"},
		{"own grant beats other free", "restart: grant", "restart: free", "grant"},
		{"own confirm beats other free", "restart: confirm", "restart: free", "confirm"},
		{"other may be stricter", "restart: free", "restart: grant", "grant"},
		{"own says nothing", "load_deadline: 1m", "restart: free", "confirm"},
		{"other says nothing", "restart: free", "load_deadline: 1m", "confirm"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := policyApp(t, test.own, test.other)
			c, err := a.loadConfig(pflag.NewFlagSet("", pflag.ContinueOnError))
			if err != nil {
				t.Fatal(err)
			}
			if c.Restart != test.want {
				t.Errorf("policy %q, want %q", c.Restart, test.want)
			}
			a.config = c
			a.flags.yes = true // --yes answers other questions, not the owner's
			if err := a.authorise("restart x.service", nil); (err == nil) != (test.want == "free") || err != nil && !errors.Is(err, fleet.ErrRefused) {
				t.Errorf("authorise under %q = %v", test.want, err)
			}
		})
	}
}

// A configuration that would hang whoever opens it, or has no end, is an error.
func TestConfigIsAFile(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"a FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"no end":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		a := policyApp(t, "restart: free", "")
		own := a.ownConfigFile(pflag.NewFlagSet("", pflag.ContinueOnError))
		if err := errors.Join(os.Remove(own), plant(own)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.loadConfig(pflag.NewFlagSet("", pflag.ContinueOnError)); err == nil || !strings.Contains(err.Error(), own) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimesHaveAUnit(t *testing.T) {
	for text, ok := range map[string]bool{"5m": true, `"90s"`: true, "5": false, `"5"`: false, "5.5": false, "0s": false, "-5m": false, "[5m]": false} {
		a := policyApp(t, "load_deadline: "+text, "")
		_, err := a.loadConfig(pflag.NewFlagSet("", pflag.ContinueOnError))
		if (err == nil) != ok || err != nil && (exitCode(err) != exitUsage || !strings.Contains(err.Error(), "such as 5m")) {
			t.Errorf("load_deadline: %s: %v", text, err)
		}
		var watch time.Duration
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		watchFlag(f, &watch)
		text = strings.Trim(text, `"`)
		err = f.Parse([]string{"--watch=" + text})
		if (err == nil) != (ok || text == "0s") || err != nil && !strings.Contains(err.Error(), "such as 60s") {
			t.Errorf("--watch=%s: %v", text, err)
		}
	}
}
