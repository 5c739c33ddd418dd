package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestGuard asks the scripts of a native package what uses its folder, with units in a folder of the test's.
func TestGuard(t *testing.T) {
	base := t.TempDir()
	dir, units := filepath.Join(base, "1bit-t-a1"), filepath.Join(base, "units")
	for _, d := range []string{dir, filepath.Join(units, "x.service.d")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "server")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", sleep, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink(dir, filepath.Join(base, "current")); err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer("@NAME@", "1bit-t-a1", "@DIR@", dir, "@DIGEST@", "sha256:0", "@MENTIONED@", mentionPattern("1bit-t-a1")).Replace(guardFunctions) +
		"\nunit_folders() { printf '%s\\n' '" + units + "'; }\nrefuse_in_use\necho free\n"
	ask := func() string {
		cmd := exec.Command("sh", "-c", script)
		cmd.WaitDelay = time.Second
		timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		out, _ := cmd.CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	unit := func(name, text string) func(*testing.T) {
		return func(t *testing.T) {
			path := filepath.Join(units, name)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(path) })
		}
	}
	start := func(args ...string) func(*testing.T) {
		return func(t *testing.T) {
			cmd := exec.Command(args[0], args[1:]...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
				if comm, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "comm")); string(comm) == "server\n" {
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not start")
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		scene func(*testing.T)
		want  string
	}{
		"nothing":           {func(*testing.T) {}, "free"},
		"another name":      {unit("a.service", "ExecStart=/opt/1bit-t-a12/server\nExecStop=/opt/x1bit-t-a1/server\n"), "free"},
		"a drop-in":         {unit("x.service.d/a.conf", "Environment=A=/opt/1bit-t-a1/server\n"), "x.service.d/a.conf names it"},
		"an escaped hyphen": {unit("a.service", `ExecStart=/opt/1bit\x2dt-a1/server`), "a.service names it"},
		"over a link":       {unit("a.service", "ExecStart="+base+"/current/server --port 1\n"), "leads over a link to " + program},
		"a running program": {start(program, "60"), "(server) runs from"},
		"a file without end": {func(t *testing.T) {
			if err := os.Symlink("/proc/kmsg", filepath.Join(units, "k.service")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(filepath.Join(units, "k.service")) })
		}, "free"},
		"under another path": {func(t *testing.T) {
			if os.Getuid() != 0 {
				if os.Getenv("ONEBIT_CI") != "" {
					t.Fatal("it takes root to mount")
				}
				t.Skip("it takes root to mount")
			}
			if err := os.MkdirAll(filepath.Join(base, "srv"), 0o755); err != nil {
				t.Fatal(err)
			}
			start("unshare", "-m", "sh", "-c", `mount --bind "$1" "$2" && exec "$2/server" 60`, "sh", dir, filepath.Join(base, "srv"))(t)
		}, "(server) runs from"},
		"a name that a terminal acts on": {unit("\u202e\x1b[31m.service", "ExecStart=/opt/1bit-t-a1/server\n"), "/[31m.service names it"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.scene(t)
			if got := ask(); !strings.Contains(got, tt.want) || tt.want != "free" && strings.Contains(got, "free") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
