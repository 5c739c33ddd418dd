package doctor_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/fleet/doctor"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// A machine without systemd is told so once, and what could not be looked at is not called well.
func TestWithoutSystemd(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		"etc/passwd":          "root:x:0:0:root:/root:/bin/bash\nme:x:4242:4242::/home/me:/bin/sh\n",
		"etc/group":           "root:x:0:\nme:x:4242:\nsudo:x:27:me\n",
		"proc/self/mountinfo": "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
		"proc/meminfo":        "MemAvailable: 8388608 kB\n",
		"dev/kmsg":            "",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	st := store.Open(filepath.Join(home, "share"), filepath.Join(home, "state/1bit"))
	h := &fleet.Host{
		Scope: systemd.ScopeUser, Store: st, StateDir: st.StateDir, UnitDir: filepath.Join(home, "systemd/user"), Root: root,
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: 4242, Root: root})
		},
		Now: time.Now, User: "me",
	}
	r, err := doctor.Run(t.Context(), doctor.Options{
		Hosts: []*fleet.Host{h}, Root: root, UID: os.Getuid(), User: "me", Now: time.Now(),
		Policy: doctor.Policy{File: filepath.Join(home, "config.yaml"), Restart: "confirm"},
		Claim:  claim.Lock{Path: filepath.Join(home, "lock")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Check != "bus" || !strings.Contains(r.Findings[0].What, "not booted with systemd") {
		t.Errorf("found %s", show(r.Findings))
	}
	looked := []string{"store-place", "disk-space", "writable", "staging", "gpu-fault", "claim-lock", "clock"} // need no manager
	for _, c := range r.Checks {
		want := doctor.StateUnknown
		switch {
		case c.Name == "bus":
			want = doctor.StateFound
		case slices.Contains(looked, c.Name):
			want = doctor.StateOK
		}
		if c.State != want || (c.State == doctor.StateUnknown) != (c.Why != "") {
			t.Errorf("%s is %s (%s), want %s", c.Name, c.State, c.Why, want)
		}
	}
	policy := strings.Join(r.Policy, "\n")
	for _, want := range []string{"restart: confirm (the default, since there is no", "guards against accident", "me (sudo)"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy is told without %q:\n%s", want, policy)
		}
	}
}

// Every check is whole, has a name of its own and a row in the table of the documentation.
func TestChecksAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	var order []string
	for _, c := range doctor.Checks() {
		if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(c.Name) || slices.Contains(order, c.Name) {
			t.Errorf("%q is no name, or one that is taken", c.Name)
		}
		order = append(order, c.Name)
		for _, sentence := range []string{c.Reason, c.Remedy} {
			if sentence == "" || strings.ContainsAny(sentence, "|\n") {
				t.Errorf("%s: %q is no sentence for a table", c.Name, sentence)
			}
		}
		if got, want := rows[c.Name], c.Reason+" | "+c.Remedy; got != want {
			t.Errorf("docs/doctor.md has for %s\n%q\nwant\n| `%s` | %s |", c.Name, got, c.Name, want)
		}
		delete(rows, c.Name)
	}
	for name := range rows {
		t.Errorf("docs/doctor.md has the check %s, which is not there", name)
	}
}
