package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// journalScripts are what units of a user run, with what makes a journal hard to read. Each waits until it is let go, for
// journald knows the unit only of a process that it could look at.
func journalScripts(dir string) map[string]string {
	wait := "echo here\nuntil test -e " + dir + "/go; do sleep 0.05; done\n"
	return map[string]string{
		"j-words": wait + `printf '\033[31mred\033[0m\n\377\200bin\n<3>an error\n'` + "\n" +
			"x=$(head -c 200000 /dev/zero | tr '\\0' x)\nprintf '%s\\nthe end' $x\nexit 1\n",
		"j-segv":  wait + "kill -SEGV $$\n",
		"j-limit": wait + "exit 3\n",
		"j-flood": "echo here\nuntil test -e " + dir + "/flood; do sleep 0.05; done\n" +
			"i=0; while test $i -lt 8000; do echo line $i; i=$((i+1)); done\nsleep 3\necho after\nexit 1\n",
		"j-brief": "echo gone\nexit 4\n",
	}
}

// journalUnits are the files of the units.
func journalUnits(dir string) map[string]string {
	units := map[string]string{"j-none": "[Service]\nExecStart=/nonexistent/program\n"}
	for name := range journalScripts(dir) {
		units[name] = "[Service]\nExecStart=/bin/sh " + dir + "/" + name + "\n"
	}
	units["j-limit"] += "Restart=always\nRestartSec=10ms\n[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=2\n"
	units["j-brief"] += "SyslogIdentifier=brief\n"
	return units
}

// journalHost is the user of the host, seen by root.
type journalHost struct {
	name string
	uid  int
}

// run runs a command as the user.
func (h journalHost) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "runuser", append([]string{"-u", h.name, "--"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR=/run/user/"+strconv.Itoa(h.uid), "HOME=/home/"+h.name)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestJournal has the units write into a real journal, which root and the user then read.
func TestJournal(t *testing.T) {
	if !inside(t, true) {
		return
	}
	h := journalUser(t)
	shell(t, "mkdir -p /etc/systemd/journald.conf.d && printf '[Journal]\nRateLimitIntervalSec=2s\nRateLimitBurst=100\n' >/etc/systemd/journald.conf.d/t.conf")
	t.Cleanup(func() {
		shell(t, "rm /etc/systemd/journald.conf.d/t.conf; systemctl restart systemd-journald")
	})
	dir := t.TempDir()
	for at := dir; at != "/tmp"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range journalScripts(dir) {
		writeFile(t, filepath.Join(dir, name), text)
	}
	units := journalUnits(dir)
	for name, text := range units {
		writeFile(t, filepath.Join("/home", h.name, ".config/systemd/user", name+".service"), text)
	}
	since := time.Now().Add(-time.Second)
	ends := make(chan Entry, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	followed := make(chan error, 1)
	go func() {
		followed <- FollowJournal(ctx, JournalQuery{UID: h.uid, Since: since, IDs: []string{IDFailureResult, IDUnitStartFailed}}, func(e Entry) error {
			ends <- e
			return nil
		})
	}()
	shell(t, "systemctl restart systemd-journald") // takes the limits, and must not end the following
	h.run(t, "systemctl", "--user", "daemon-reload")
	for name := range units {
		h.run(t, "systemctl", "--user", "start", "--no-block", name)
	}
	for _, name := range []string{"j-words", "j-segv", "j-limit", "j-flood"} {
		awaitEntry(t, JournalQuery{UID: h.uid, Unit: name, Since: since}, func(e Entry) bool { return e.Message == "here" })
	}
	shell(t, "journalctl --rotate")
	writeFile(t, filepath.Join(dir, "go"), "")

	results := map[string][]string{}
	want := map[string][]string{
		"j-words.service": {"exit-code"}, "j-segv.service": {"signal"}, "j-limit.service": {"exit-code", "exit-code", "exit-code", "job failed"},
		"j-brief.service": {"exit-code"}, "j-none.service": {"exit-code"},
	}
	for {
		if cmp.Equal(want, results) {
			if want["j-flood.service"] != nil {
				break
			}
			// Only now: it takes along what journald should keep of the others.
			want["j-flood.service"] = []string{"exit-code"}
			writeFile(t, filepath.Join(dir, "flood"), "")
		}
		select {
		case e := <-ends:
			result := e.Fields["UNIT_RESULT"]
			if e.ID == IDUnitStartFailed {
				result = "job " + e.Fields["JOB_RESULT"]
			}
			results[e.Unit] = append(results[e.Unit], result)
		case err := <-followed:
			t.Fatalf("the following ended: %v", err)
		case <-ctx.Done():
			t.Fatalf("followed (-want +got):\n%s", cmp.Diff(want, results))
		}
	}
	t.Run("of the system", func(t *testing.T) { testJournalOfSystem(t, since) })
	t.Run("as root", func(t *testing.T) { testJournalOfUser(t, h, since) })
	t.Run("as the user", func(t *testing.T) {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		t.Log(h.run(t, program, "-test.run=^TestJournalAsUser$", "-test.v"))
	})
	t.Run("removed", func(t *testing.T) { testJournalRemoved(t, h, since) })
	cancel()
	if err := <-followed; err != nil {
		t.Errorf("the following ended with %v", err)
	}
}

func testJournalOfUser(t *testing.T, h journalHost, since time.Time) {
	awaitEntry(t, JournalQuery{UID: h.uid, Unit: "j-words", Since: since}, func(e Entry) bool { return e.Message == "the end" })
	entries, gaps := readAll(t, JournalQuery{UID: h.uid, Unit: "j-words", Since: since})
	var words []string
	for _, e := range entries {
		if e.Fields["_TRANSPORT"] == "stdout" {
			words = append(words, fmt.Sprintf("%s %d %q %q", e.Identifier, e.Priority, e.Message, e.Missing))
		}
		if e.ID != IDSuppressed && e.Unit != "j-words.service" || len(e.Invocation) != 32 || len(e.Boot) != 32 || e.PID == 0 || e.At.IsZero() || e.Monotonic == 0 {
			t.Errorf("%+v", e)
		}
	}
	long := strings.Repeat("x", 200000)
	if diff := cmp.Diff([]string{
		`sh 6 "here" ""`, `sh 6 "\x1b[31mred\x1b[0m" ""`, `sh 6 "\xff\x80bin" ""`, `sh 3 "an error" ""`, `sh 6 "` + long + `" ""`, `sh 6 "the end" ""`,
	}, words); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	checkSaid(t, entries, "exited exited 1", "result exit-code", "started done")
	if tail := LogTail(t.Context(), entries[0].Invocation, 1); !slices.Equal(tail, []string{"the end"}) {
		t.Errorf("the tail is %.100q", tail)
	}

	entries, _ = readAll(t, JournalQuery{UID: h.uid, Unit: "j-segv", Since: since})
	checkSaid(t, entries, "exited killed 11", "result signal")
	entries, _ = readAll(t, JournalQuery{UID: h.uid, Unit: "j-limit", Since: since})
	checkSaid(t, entries, "exited exited 3", "restart 1", "restart 2", "failed failed")
	entries, _ = readAll(t, JournalQuery{UID: h.uid, Unit: "j-none", Since: since})
	checkSaid(t, entries, "spawn /nonexistent/program", "exited exited 203")
	// Its only line is attributed or not: that is a race, which the identifier makes no matter.
	awaitEntry(t, JournalQuery{UID: h.uid, Unit: "j-brief", Since: since, Identifier: "brief"}, func(e Entry) bool { return e.Message == "gone" })

	awaitEntry(t, JournalQuery{UID: h.uid, Unit: "j-flood", Since: since}, func(e Entry) bool { return e.Message == "after" })
	entries, gaps = readAll(t, JournalQuery{UID: h.uid, Unit: "j-flood", Since: since})
	lines := slices.DeleteFunc(messages(entries), func(m string) bool { return !strings.HasPrefix(m, "line ") })
	dropped := 0
	for _, e := range entries {
		if e.ID == IDSuppressed {
			n, _ := strconv.Atoi(e.Fields["N_DROPPED"])
			dropped += n
		}
	}
	// The other units and the manager are counted with it.
	if dropped == 0 || len(lines)+dropped < 8000 || dropped > 8100 {
		t.Errorf("%d lines are there and %d dropped", len(lines), dropped)
	}
	if len(gaps) != 1 || !strings.Contains(gaps[0], "of user@"+strconv.Itoa(h.uid)+".service, which wrote too many") {
		t.Errorf("gaps %q", gaps)
	}
}

// testJournalOfSystem has a unit of the system that ends at once.
func testJournalOfSystem(t *testing.T, since time.Time) {
	writeFile(t, "/etc/systemd/system/j-system.service", "[Service]\nExecStart=/bin/sh -c 'echo words; exit 5'\n")
	shell(t, "systemctl daemon-reload && systemctl start j-system")
	q := JournalQuery{Scope: ScopeSystem, Unit: "j-system", Since: since}
	awaitEntry(t, q, func(e Entry) bool { return e.ID == IDFailureResult })
	awaitEntry(t, q, func(e Entry) bool { return e.Message == "words" }) // they come by another way than what systemd says
	entries, gaps := readAll(t, q)
	checkSaid(t, entries, "started done", "exited exited 5", "result exit-code")
	if len(gaps) != 0 {
		t.Errorf("gaps %q", gaps)
	}
	q.IDs = []string{IDProcessExited}
	if entries, _ = readAll(t, q); len(entries) != 1 || entries[0].Unit != "j-system.service" || entries[0].PID != 1 {
		t.Errorf("only ends: %+v", entries)
	}
}

// TestJournalAsUser is run by TestJournal, as a user who is not in the group systemd-journal.
func TestJournalAsUser(t *testing.T) {
	if os.Getenv(insideVariable) == "" || os.Getuid() == 0 {
		return
	}
	entries, gaps := readAll(t, JournalQuery{Unit: "j-segv"})
	checkSaid(t, entries, "exited killed 11", "result signal")
	if len(gaps) != 1 || !strings.Contains(gaps[0], "usermod --append --groups systemd-journal USER") {
		t.Errorf("gaps %q", gaps)
	}
	_, err := ReadJournal(limited(t), JournalQuery{Scope: ScopeSystem, Unit: "systemd-journald"}, func(Entry) error { return nil })
	if !errors.Is(err, ErrNoJournal) || !strings.Contains(err.Error(), "systemd-journal USER") {
		t.Errorf("the system's journal: %v", err)
	}
}

// testJournalRemoved reads what is no longer there, and what cannot be read.
func testJournalRemoved(t *testing.T, h journalHost, since time.Time) {
	last := Entry{}
	for _, e := range first(readAll(t, JournalQuery{UID: h.uid, Unit: "j-segv", Since: since})) {
		last = e
	}
	if after := first(readAll(t, JournalQuery{UID: h.uid, Unit: "j-segv", After: last.Cursor})); len(after) != 0 {
		t.Errorf("after the last entry there are %v", messages(after))
	}
	shell(t, "journalctl --rotate && journalctl --vacuum-size=1K")
	_, gaps := readAll(t, JournalQuery{UID: h.uid, Unit: "j-segv", Since: since})
	if len(gaps) != 1 || !strings.Contains(gaps[0], "older entries have been removed") {
		t.Errorf("after a vacuum: gaps %q", gaps)
	}
	h.run(t, "systemctl", "--user", "start", "j-brief")
	awaitEntry(t, JournalQuery{UID: h.uid, Unit: "j-brief"}, func(e Entry) bool { return e.ID == IDFailureResult })
	_, gaps = readAll(t, JournalQuery{UID: h.uid, Unit: "j-brief", After: last.Cursor})
	if len(gaps) != 1 || !strings.Contains(gaps[0], "no longer has the entry") {
		t.Errorf("after an entry that is gone: gaps %q", gaps)
	}
	shell(t, "for d in /var/log/journal/*; do head -c 5000 /dev/zero >$d/torn.journal; done")
	_, gaps = readAll(t, JournalQuery{UID: h.uid, Unit: "j-brief"})
	if len(gaps) == 0 || !strings.Contains(gaps[0], "journalctl says: ") || !strings.Contains(gaps[0], "torn.journal") {
		t.Errorf("with a torn file: gaps %q", gaps)
	}
	shell(t, "rm /var/log/journal/*/torn.journal")
}

// checkSaid looks for what systemd said.
func checkSaid(t *testing.T, entries []Entry, want ...string) {
	t.Helper()
	var said []string
	for _, e := range entries {
		f := e.Fields
		switch e.ID {
		case IDUnitStarted:
			said = append(said, "started "+f["JOB_RESULT"])
		case IDProcessExited:
			said = append(said, "exited "+f["EXIT_CODE"]+" "+f["EXIT_STATUS"])
		case IDFailureResult:
			said = append(said, "result "+f["UNIT_RESULT"])
		case IDRestartScheduled:
			said = append(said, "restart "+f["N_RESTARTS"])
		case IDUnitStartFailed:
			said = append(said, "failed "+f["JOB_RESULT"])
		case IDSpawnFailed:
			said = append(said, "spawn "+f["EXECUTABLE"])
		}
	}
	for _, one := range want {
		if !slices.Contains(said, one) {
			t.Errorf("%q is not said, but %q", one, said)
		}
	}
}

func messages(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Message)
	}
	return all
}

func first(entries []Entry, _ []string) []Entry { return entries }

func readAll(t *testing.T, q JournalQuery) ([]Entry, []string) {
	t.Helper()
	var all []Entry
	gaps, err := ReadJournal(limited(t), q, func(e Entry) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, gaps
}

// awaitEntry waits until the journal has an entry.
func awaitEntry(t *testing.T, q JournalQuery, is func(Entry) bool) {
	t.Helper()
	for ctx := limited(t); ; {
		entries, _ := readAll(t, q)
		if slices.ContainsFunc(entries, is) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: the journal has only %q", q.Unit, messages(entries))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// journalUser finds the host's user: the one that lingers.
func journalUser(t *testing.T) journalHost {
	t.Helper()
	lingering, err := filepath.Glob("/var/lib/systemd/linger/*")
	if err != nil || len(lingering) != 1 {
		t.Fatalf("lingering: %v, %v", lingering, err)
	}
	h := journalHost{name: filepath.Base(lingering[0])}
	out, err := exec.CommandContext(t.Context(), "id", "-u", h.name).Output()
	if err != nil {
		t.Fatal(err)
	}
	if h.uid, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
		t.Fatal(err)
	}
	return h
}

func shell(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
