package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded is a journal of which a script is the reader: it notes its arguments, and for the first of the patterns that
// they fit it prints what belongs to it.
func recorded(t *testing.T, cases ...string) (journal, func() string) {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "etc/machine-id"), "1234\n")
	writeFile(t, filepath.Join(root, "var/log/journal/1234/system.journal"), "")
	script := "#!/bin/sh\necho \"$*\" >>" + root + "/args\ncase \"$*\" in\n"
	for i := 0; i+1 < len(cases); i += 2 {
		file := filepath.Join(root, fmt.Sprint("out", i))
		writeFile(t, file, cases[i+1])
		script += cases[i] + ") cat " + file + "; test ! -e " + file + ".sh || . " + file + ".sh;;\n"
	}
	program := filepath.Join(root, "journalctl")
	writeFile(t, program, script+"esac\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	return journal{program: program, root: root, pause: time.Millisecond}, func() string {
		args, _ := os.ReadFile(filepath.Join(root, "args"))
		return string(args)
	}
}

// said is a row of a unit's at a second of the clock and since a boot.
func said(boot, cursor string, second, up int, members string) string {
	return fmt.Sprintf(`{"__REALTIME_TIMESTAMP":"%d","__MONOTONIC_TIMESTAMP":"%d","_BOOT_ID":"%s","__CURSOR":"%s","_SYSTEMD_UNIT":"llm.service",%s}`+"\n",
		1792752000+second, up*1e6, boot, cursor, members)
}

func TestReadJournalGaps(t *testing.T) {
	since := time.Unix(1792752000, 0)
	at := func(boot, cursor string, second, up int, members string) string {
		return strings.Replace(said(boot, cursor, second, up, members), `","__MONO`, `000000","__MONO`, 1)
	}
	start := at("b", "s=x;i=9", 100, 5, `"MESSAGE":"Started","MESSAGE_ID":"`+IDUnitStarted+`","UNIT":"llm.service","INVOCATION_ID":"i"`)
	line := at("b", "s=x;i=a", 101, 6, `"MESSAGE":"x","_SYSTEMD_INVOCATION_ID":"i"`)
	long := "journald dropped 9 messages of llm.service, which wrote too many at a time (RateLimitBurst= in journald.conf), in 2 floods from 2026-10-23 10:41:40Z to 2026-10-23 10:41:41Z"
	drop := `"MESSAGE_ID":"` + IDSuppressed + `","MESSAGE":"Suppressed 4 messages from llm.service","N_DROPPED":`
	var flood strings.Builder
	for i := range rateBurst {
		flood.WriteString(at("b", fmt.Sprint("i=", i), 100, 5, `"MESSAGE":"y"`))
	}
	tests := map[string]struct {
		first, rows string
		q           JournalQuery
		want        []string
	}{
		"whole":         {at("b", "s=x;i=1", 50, 1, `"MESSAGE":"k"`), start + line, JournalQuery{Since: since}, nil},
		"before":        {at("b", "s=x;i=7", 0, 1, `"MESSAGE":"k"`), line, JournalQuery{Since: since}, nil},
		"removed":       {at("b", "s=x;i=7", 50, 1, `"MESSAGE":"k"`), start + line, JournalQuery{Since: since}, []string{"the journal begins at 2026-10-23 10:40:50Z: older entries have been removed (SystemMaxUse= in journald.conf says how much is kept)"}},
		"cut":           {at("b", "s=x;i=1", 50, 1, `"MESSAGE":"k"`), line, JournalQuery{Since: since}, []string{"the journal begins at 2026-10-23 10:40:50Z, and the unit ran before: the beginning of its log is gone"}},
		"in memory":     {at("b", "s=x;i=1", 50, 1, `"MESSAGE":"k"`), start + line, JournalQuery{Since: since}, []string{"the journal begins at 2026-10-23 10:40:50Z, with the boot: it is kept in memory only (Storage=persistent in journald.conf keeps it)"}},
		"all there is":  {at("b", "s=x;i=7", 50, 1, `"MESSAGE":"k"`), line, JournalQuery{}, nil},
		"floods":        {"", at("b", "i=1", 100, 5, drop+`"4"`) + at("b", "i=2", 101, 6, drop+`"5"`), JournalQuery{}, []string{long}},
		"kernel missed": {"", at("b", "i=1", 100, 5, `"MESSAGE":"Missed 3 kernel messages","MESSAGE_ID":"`+IDKernelMissed+`"`), JournalQuery{Kernel: true}, []string{"journald dropped an unknown number of messages of the kernel, which came too fast, at 2026-10-23 10:41:40Z"}},
		"silent flood": {"", flood.String(), JournalQuery{},
			[]string{"10000 messages had come within 30s at 2026-10-23 10:41:40Z: journald may have dropped those after them without a word"}},
		"flood that was kept": {"", flood.String() + at("b", "i=z", 140, 45, `"MESSAGE":"y"`), JournalQuery{}, nil},
		"clock set back":      {"", at("b", "i=1", 4000, 5, `"MESSAGE":"y"`) + at("b", "i=2", 401, 6, `"MESSAGE":"y"`), JournalQuery{}, []string{"the clock was set back by 1h0m0s before 2026-10-23 10:46:41Z: times before and after that do not compare, and entries may be left out"}},
		"boots":               {"", at("b", "i=1", 4000, 5, `"MESSAGE":"y"`) + at("c", "i=2", 401, 6, `"MESSAGE":"y"`), JournalQuery{}, nil},
		"flood that was told": {"", flood.String() + at("b", "i=y", 100, 5, drop+`"4"`), JournalQuery{}, []string{strings.Replace(strings.Replace(long, "9", "4", 1), "in 2 floods from 2026-10-23 10:41:40Z to 2026-10-23 10:41:41Z", "at 2026-10-23 10:41:40Z", 1)}},
		"cursor gone":         {"", at("b", "i=2", 100, 5, `"MESSAGE":"y"`), JournalQuery{After: "i=1"}, []string{"the journal no longer has the entry from which on it was to be read: it goes on at 2026-10-23 10:41:40Z"}},
		"cursor there":        {"", at("b", "i=1", 100, 5, `"MESSAGE":"y"`) + at("b", "i=2", 100, 5, `"MESSAGE":"y"`), JournalQuery{After: "i=1"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j, _ := recorded(t, "*fields=_BOOT_ID", test.first, "*", test.rows)
			test.q.Scope, test.q.Unit = ScopeSystem, "llm"
			if name == "in memory" {
				if err := os.Rename(filepath.Join(j.root, "var"), filepath.Join(j.root, "run")); err != nil {
					t.Fatal(err)
				}
			}
			gaps, err := j.read(limited(t), test.q, func(Entry) error { return nil })
			if diff := cmp.Diff(test.want, gaps); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Of all that the matches let through only what was asked for is handed out.
func TestReadJournalWants(t *testing.T) {
	rows := said("b", "i=1", 1, 1, `"MESSAGE":"cursor"`) + said("b", "i=2", 2, 2, `"MESSAGE":"early"`) +
		said("b", "i=3", 3, 3, `"MESSAGE":"one"`) +
		strings.Replace(said("b", "i=4", 4, 4, `"MESSAGE":"no unit","SYSLOG_IDENTIFIER":"1bit"`), `"_SYSTEMD_UNIT":"llm.service",`, "", 1) +
		strings.Replace(said("b", "i=5", 5, 5, `"MESSAGE":"another's","SYSLOG_IDENTIFIER":"1bit"`), "llm", "other", 1) +
		said("b", "i=6", 6, 6, `"MESSAGE":"end","MESSAGE_ID":"`+IDFailureResult+`"`)
	since := time.UnixMicro(1792752003)
	tests := []struct {
		q    JournalQuery
		want []string
	}{
		{JournalQuery{Identifier: "1bit"}, []string{"cursor", "early", "one", "no unit", "end"}},
		{JournalQuery{Identifier: "1bit", After: "i=1", Since: since}, []string{"one", "no unit", "end"}},
		{JournalQuery{IDs: []string{IDFailureResult}}, []string{"end"}},
	}
	for _, test := range tests {
		j, _ := recorded(t, "*", rows)
		test.q.Scope, test.q.Unit = ScopeSystem, "llm"
		var got []string
		gaps, err := j.read(limited(t), test.q, func(e Entry) error { got = append(got, e.Message); return nil })
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" || len(gaps) != 0 {
			t.Errorf("%+v: %q, %v (-want +got):\n%s", test.q, gaps, err, diff)
		}
	}
}

func TestReadJournalFails(t *testing.T) {
	broken, _ := recorded(t, "*", said("b", "i=1", 1, 1, `"MESSAGE":"y"`))
	writeFile(t, filepath.Join(broken.root, "out0.sh"), "echo Failed to iterate through journal: Bad message >&2; exit 1")
	gaps, err := broken.read(limited(t), JournalQuery{}, func(Entry) error { return nil })
	want := []string{"journalctl gave up: what comes after the last entry is missing", "journalctl says: Failed to iterate through journal: Bad message"}
	if diff := cmp.Diff(want, gaps); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	none, _ := recorded(t, "*", "")
	writeFile(t, filepath.Join(none.root, "out0.sh"), "echo something else >&2; exit 1")
	if _, err = none.read(limited(t), JournalQuery{}, func(Entry) error { return nil }); err == nil || !strings.Contains(err.Error(), "(something else)") {
		t.Errorf("error %v", err)
	}
	stop := errors.New("stop")
	gaps, err = broken.read(limited(t), JournalQuery{After: "i=0"}, func(Entry) error { return stop })
	if err != stop || len(gaps) != 1 {
		t.Errorf("error %v, want that of the function, and gaps %q", err, gaps)
	}
	if err := os.RemoveAll(filepath.Join(none.root, "var")); err != nil {
		t.Fatal(err)
	}
	if _, err = none.read(limited(t), JournalQuery{}, func(Entry) error { return nil }); !errors.Is(err, ErrNoJournal) || !strings.Contains(err.Error(), "Storage=none") {
		t.Errorf("without files: %v", err)
	}
	broken.program += "-gone"
	if _, err = broken.read(limited(t), JournalQuery{}, func(Entry) error { return nil }); !errors.Is(err, ErrNoJournal) {
		t.Errorf("without the program: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = none.read(ended, JournalQuery{}, func(Entry) error { return nil }); err == nil {
		t.Error("no error of a context that has ended")
	}
}

func TestJournalArgs(t *testing.T) {
	const suppressed, coredump = "MESSAGE_ID=" + IDSuppressed, "MESSAGE_ID=" + IDCoredump
	tests := []struct {
		q    JournalQuery
		want string
	}{
		{JournalQuery{Scope: ScopeSystem}, "--"},
		{JournalQuery{Scope: ScopeSystem, Unit: "llm", After: "i=1", Since: time.Unix(5, 6000), Until: time.Unix(7, 0)},
			"--cursor=i=1 --until=@7.000000 -- _SYSTEMD_UNIT=llm.service + _PID=1 UNIT=llm.service + _UID=0 OBJECT_SYSTEMD_UNIT=llm.service + " +
				coredump + " COREDUMP_UNIT=llm.service _COMM=systemd-coredum + _UID=0 " + suppressed + " OBJECT_SYSTEMD_UNIT=llm.service"},
		{JournalQuery{Unit: "llm", UID: 7, Since: time.Unix(5, 6000), Identifier: "1bit"},
			"--since=@5.000006 -- _SYSTEMD_USER_UNIT=llm.service _SYSTEMD_OWNER_UID=7 + USER_UNIT=llm.service _UID=7 + " +
				"_UID=0 OBJECT_SYSTEMD_USER_UNIT=llm.service OBJECT_SYSTEMD_UNIT=user@7.service + " + coredump +
				" COREDUMP_USER_UNIT=llm.service _COMM=systemd-coredum + _UID=7 _TRANSPORT=stdout SYSLOG_IDENTIFIER=1bit + _UID=0 " +
				suppressed + " OBJECT_SYSTEMD_UNIT=user@7.service"},
		{JournalQuery{UID: 7, IDs: []string{IDFailureResult, IDOOM}},
			"-- _SYSTEMD_UNIT=user@7.service MESSAGE_ID=" + IDFailureResult + " MESSAGE_ID=" + IDOOM + " + _UID=0 OBJECT_SYSTEMD_UNIT=user@7.service MESSAGE_ID=" +
				IDFailureResult + " MESSAGE_ID=" + IDOOM + " + _UID=0 " + suppressed + " OBJECT_SYSTEMD_UNIT=user@7.service"},
		{JournalQuery{Scope: ScopeSystem, IDs: []string{IDOOM}}, "-- _UID=0 MESSAGE_ID=" + IDOOM + " + _UID=0 " + suppressed},
		{JournalQuery{Kernel: true}, "-- _TRANSPORT=kernel SYSLOG_FACILITY=0 + _UID=0 MESSAGE_ID=" + IDKernelMissed},
	}
	for _, test := range tests {
		args, err := test.q.args()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, strings.Join(args[5:], " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.q, diff)
		}
	}
	for _, bad := range []JournalQuery{{Unit: "a/b"}, {Unit: "a b"}, {Unit: "llm", IDs: []string{"x"}}} {
		if args, err := bad.args(); err == nil {
			t.Errorf("%+v gives %q", bad, args)
		}
	}
}

// TestFollowLong has a journalctl that ends after every entry.
func TestFollowLong(t *testing.T) {
	var cases []string
	for i := range 2 * followTries {
		cases = append(cases, fmt.Sprintf("*cursor=i=%d\\ *", i), said("b", fmt.Sprint("i=", i+1), i, i+1, `"MESSAGE":"more"`))
	}
	j, args := recorded(t, cases...)
	stop, n := errors.New("stop"), 0
	err := j.follow(limited(t), JournalQuery{After: "i=0"}, func(Entry) error {
		if n++; n == 2*followTries {
			return stop
		}
		return nil
	})
	if err != stop {
		t.Errorf("%v after %d entries\n%s", err, n, args())
	}
}

// A journalctl that ends is started again where it was; nothing comes twice and nothing is left out.
func TestFollowGoesOn(t *testing.T) {
	j, args := recorded(t,
		"*lines=1", said("b", "i=0", 0, 1, `"MESSAGE":"last"`),
		"*cursor=i=0*", said("b", "i=1", 1, 2, `"MESSAGE":"one"`),
		"*cursor=i=1*", said("b", "i=1", 1, 2, `"MESSAGE":"one"`)+said("b", "i=2", 2, 3, `"MESSAGE":"two"`)+said("b", "i=3", 3, 4, `"MESSAGE":"three"`),
		"*cursor=i=3*", said("b", "i=3", 3, 4, `"MESSAGE":"three"`)+said("b", "i=4", 4, 5, `"MESSAGE":"four"`))
	ctx, cancel := context.WithCancel(limited(t))
	var got []string
	err := j.follow(ctx, JournalQuery{Unit: "llm", UID: 7}, func(e Entry) error {
		if got = append(got, e.Message); e.Message == "four" {
			cancel()
		}
		return nil
	})
	if diff := cmp.Diff([]string{"one", "two", "three", "four"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s\n%s", err, diff, args())
	}
	if all := args(); !strings.Contains(all, "--follow --no-tail") {
		t.Errorf("arguments %s", all)
	}
	stop := errors.New("stop")
	if err := j.follow(limited(t), JournalQuery{After: "i=0"}, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want that of the function", err)
	}
	j.program += "-gone"
	if err := j.follow(limited(t), JournalQuery{After: "i=0"}, func(Entry) error { return nil }); !errors.Is(err, ErrNoJournal) {
		t.Errorf("without the program: %v", err)
	}
}

func TestFollowGivesUp(t *testing.T) {
	j, args := recorded(t, "*", "")
	writeFile(t, filepath.Join(j.root, "out0.sh"), "echo it is broken >&2; exit 1")
	err := j.follow(limited(t), JournalQuery{After: "i=0"}, func(Entry) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "exit status 1 (it is broken)") || strings.Count(args(), "\n") != followTries {
		t.Errorf("%v after\n%s", err, args())
	}
}
