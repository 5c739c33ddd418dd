package claim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/testhost"
	"github.com/1bit-systems/pkg/systemd"
)

// insideVariable tells the test binary what to do under the real systemd of a test host.
const insideVariable = "CLAIM_TEST_INSIDE"

// Under a real systemd a command is in a scope, of the user's manager and of the system's, and nothing gets out of it.
// Accounts share a lock that one of them has made.
func TestUnderSystemd(t *testing.T) {
	switch os.Getenv(insideVariable) {
	case "scopes":
		insideScopes(t)
		return
	case "make":
		insideMake(t)
		return
	case "share":
		insideShare(t)
		return
	}
	host := testhost.Require(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := host.Bring(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ user, what string }{{host.User, "scopes"}, {"root", "scopes"}, {"root", "make"}, {host.User, "share"}} {
		cmd := host.Command(t.Context(), step.user, program, "-test.run=^TestUnderSystemd$", "-test.v", "-test.timeout=10m")
		cmd.Env = append(cmd.Env, insideVariable+"="+step.what)
		out, err := cmd.CombinedOutput()
		t.Logf("%s as %s:\n%s", step.what, step.user, out)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func insideScopes(t *testing.T) {
	opts := systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: os.Getuid(), RuntimeDir: os.Getenv("XDG_RUNTIME_DIR")}
	if os.Getuid() == 0 {
		opts = systemd.ConnectOptions{Scope: systemd.ScopeSystem}
	}
	m, err := systemd.Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dir := t.TempDir()
	for i, killed := range []bool{false, true} {
		script, begun, sleeps := broodOf(dir, ownNumber(90+i), cleared)
		c := claimOrder{
			Lock: filepath.Join(dir, "lock"), Label: "scopes", Script: script + "read x; exit 7", Scope: true, Grace: 300 * time.Millisecond,
			Notes: filepath.Join(dir, fmt.Sprint("notes", i)), History: filepath.Join(dir, HistoryFile),
		}
		cmd := claimer(t, c)
		end, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "the brood", exists(begun))
		until(t, "all of it", func() bool { return alive(sleeps) == 6 })
		scope := fmt.Sprintf("claim-test-%d.scope", cmd.Process.Pid)
		cage, err := m.FindScopeCage(t.Context(), "/", scope)
		if err != nil {
			t.Fatal(err)
		}
		if pids, err := cage.Members(); err != nil || len(pids) < 8 { // the brood, two shells, the command, the guard
			t.Errorf("in the scope: %v, %v", pids, err)
		}
		if killed {
			cmd.Process.Kill()
		}
		end.Close()
		h, err := Lock{Path: c.Lock}.take(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if n := alive(sleeps); n > 0 {
			t.Errorf("killed %v: the lock is free and %d processes are left", killed, n)
		}
		h.release()
		cmd.Wait()
		if notes := read(c.Notes); !killed && (cmd.ProcessState.ExitCode() != 7 || !strings.Contains(notes, "place: "+scope) || !strings.Contains(notes, "(sleep 6"+ownNumber(90))) {
			t.Errorf("exit status %d, noted\n%s", cmd.ProcessState.ExitCode(), notes)
		}
	}
	until(t, "the end of the scopes", func() bool {
		left, err := m.Scopes(t.Context(), "claim-test-*")
		return err == nil && len(left) == 0
	})
}

const sharedFolder, setuidProgram = "/tmp/claims", "/usr/local/bin/claim-test-id"

// insideMake makes locks for all accounts as root, in a folder in which every account may make files and remove its own.
func insideMake(t *testing.T) {
	if err := os.Mkdir(sharedFolder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sharedFolder, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	syscall.Umask(0o077)
	for _, name := range []string{"made", "read-only"} {
		if !isFree(Lock{Path: filepath.Join(sharedFolder, name)}) {
			t.Errorf("%s cannot be taken", name)
		}
	}
	write(t, filepath.Join(sharedFolder, "read-only"), "of root\n")
	if err := os.Chmod(filepath.Join(sharedFolder, "read-only"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A program that becomes root by its file.
	program, err := os.ReadFile("/usr/bin/id")
	if err == nil {
		err = os.WriteFile(setuidProgram, program, 0o755)
	}
	if err == nil {
		err = os.Chmod(setuidProgram, 0o755|os.ModeSetuid)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func insideShare(t *testing.T) {
	// What holds a command while it starts does not take its rights.
	o := options(t, "")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	o.Program, o.Args, o.Stdout = setuidProgram, []string{"-u"}, out
	if r, err := Run(t.Context(), o); err != nil || r.ExitCode != 0 || read(out.Name()) != "0\n" {
		t.Errorf("a program of root's: %+v, %v, it says %q", r, err, read(out.Name()))
	}
	t.Logf("fs.protected_regular is %s", read("/proc/sys/fs/protected_regular"))
	for _, name := range []string{"made", "read-only"} {
		lock := Lock{Path: filepath.Join(sharedFolder, name)}
		if err := lock.Usable(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		begun := filepath.Join(t.TempDir(), "begun")
		cmd := claimer(t, claimOrder{Lock: lock.Path, Label: "shared " + name, Script: ": >" + begun + "; read x; exit 5", Notes: begun + ".notes"})
		end, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "the command", func() bool { return exists(begun)() || ended(cmd) })
		h, held, err := lock.Holder()
		if err != nil || !held || h == nil || h.Label != "shared "+name || h.PID != cmd.Process.Pid {
			t.Errorf("%s: %+v, %v, %v; notes %s", name, h, held, err, read(begun+".notes"))
		}
		if text := read(lock.Path); name == "read-only" && text != "of root\n" {
			t.Errorf("the file of root holds %q", text)
		}
		end.Close()
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 5 || !isFree(lock) {
			t.Errorf("%s: exit status %d", name, code)
		}
	}
}
