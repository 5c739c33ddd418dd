package cmd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// Without a scope status shows the services of every manager that the caller may see, and says which one does not
// answer; with one it shows that manager's alone.
func TestStatusOfBothScopes(t *testing.T) {
	tools := requireTools(t)
	host := testhost.Require(t)
	dir := filepath.Join(t.TempDir(), "onebit-status")
	archive := buildPackages(t, tools.program, "", dir, "5a5a5a5")[0]
	mustRun(t, "cp", tools.program, filepath.Join(dir, "1bit"))
	inside, err := host.Bring(dir)
	if err != nil {
		t.Fatal(err)
	}
	unit := "[Service]\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\nEnvironment=ONEBIT_LLAMA_SERVER=/opt/1bit/1bit-hrx-5a5a5a5/hrx/llama/bin/llama-server\n"
	config := filepath.Join(host.Home, ".config")
	writeTree(t, map[string]string{
		host.Outside("/etc/systemd/system/both-system.service"):              unit,
		host.Outside(filepath.Join(config, "systemd/user/both-own.service")): unit,
	})
	mustRun(t, "chown", "-R", strconv.Itoa(host.UID), host.Outside(config))
	run := func(user, script string) string {
		t.Helper()
		out, err := host.Run(context.Background(), user, "timeout", "240", "sh", "-euc", "onebit="+inside+"/1bit\n"+script)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Cleanup(func() {
		run(host.User, "systemctl --user stop both-own; rm ~/.config/systemd/user/both-own.service; systemctl --user daemon-reload")
		run("root", "rm -rf /etc/systemd/system/both-system.service /run/user/65534; systemctl daemon-reload; $onebit --yes pkg remove hrx-5a5a5a5")
	})
	run("root", "$onebit pkg install "+inside+"/dist/"+filepath.Base(archive)+" >/dev/null; systemctl daemon-reload")
	run(host.User, "systemctl --user daemon-reload; systemctl --user start both-own\n"+
		"until $onebit pkg status both-own | grep -q 'as armed'; do sleep 0.05; done") // env becomes the server
	// nobody's manager has left its socket behind.
	socket := host.Outside("/run/user/65534/systemd/private")
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}

	const table = "SERVICE SCOPE ARMED LIVE SERVED BEFORE HEALTH STATE"
	own, system := "hrx-5a5a5a5 hrx-5a5a5a5 - loading as armed", "hrx-5a5a5a5 stopped - unknown stopped"
	asNobody := "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp/nobody "
	for _, tt := range []struct {
		name, user, command string
		want                []string
		notes               string
	}{
		{"the user", host.User, "$onebit pkg status", []string{table, "both-own.service user " + own, "both-system.service system " + system}, ""},
		{"root", "root", "$onebit pkg status", []string{table, "both-system.service system " + system, "both-own.service user " + host.User + " " + own}, "user manager of nobody are not shown"},
		{"an account without a manager", "root", asNobody + "$onebit pkg status", []string{table, "both-system.service system " + system}, "user manager are not shown"},
		{"one scope", host.User, "$onebit --scope user pkg status", []string{strings.Replace(table, " SCOPE", "", 1), "both-own.service " + own}, ""},
		{"the other scope", host.User, "$onebit --scope system pkg status", []string{strings.Replace(table, " SCOPE", "", 1), "both-system.service " + system}, ""},
	} {
		out := run(tt.user, tt.command)
		var rows []string
		notes := ""
		if strings.Contains(out, "permission denied") {
			t.Errorf("%s is told what it must not read:\n%s", tt.name, out)
		}
		for line := range strings.Lines(out) {
			switch line = strings.Join(strings.Fields(line), " "); {
			case strings.HasPrefix(line, "note: "):
				notes += line
			case strings.HasPrefix(line, "SERVICE "), strings.HasPrefix(line, "both-") && !strings.Contains(strings.Fields(line)[0], ":"):
				rows = append(rows, line)
			}
		}
		if got, want := strings.Join(rows, "\n"), strings.Join(tt.want, "\n"); got != want {
			t.Errorf("%s: the table is\n%s\nwant\n%s\nin\n%s", tt.name, got, want, out)
		}
		if !strings.Contains(notes, tt.notes) || tt.notes == "" && strings.Contains(notes, "not shown") {
			t.Errorf("%s: notes %q, want one with %q", tt.name, notes, tt.notes)
		}
	}
	var doc struct {
		Services []struct{ Unit, Scope, User string }
	}
	if err := json.Unmarshal([]byte(run("root", "$onebit -o json pkg status")), &doc); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(doc.Services), "[{both-system.service system } {both-own.service user "+host.User+"}]"; got != want {
		t.Errorf("as JSON root sees %s, want %s", got, want)
	}
}
