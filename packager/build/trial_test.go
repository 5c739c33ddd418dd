package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
	"github.com/google/go-cmp/cmp"
)

// tryPrograms runs programs as a trial does.
func tryPrograms(t *testing.T, limit time.Duration, programs map[string]string) ([]Trial, map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	m := &packager.Manifest{Flavour: "hrx", ID: "1", EntryPoints: map[string]string{}}
	for name, text := range programs {
		m.EntryPoints[name] = name
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			m.EntryPoints[name] = to
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tr := &trial{manifest: m, limit: limit}
	return tr.run(context.Background(), dir)
}

func TestTrial(t *testing.T) {
	trials, printed, err := tryPrograms(t, time.Minute, map[string]string{
		"answers":      "#!/bin/sh\necho 'load_backend: loaded CPU'; echo 'version: 10605 (86c33b5d5)' >&2\n",
		"first-line":   "#!/bin/sh\necho; echo '\033[1mtool 7\a'; echo more\n",
		"says-nothing": "#!/bin/sh\n",
		"unknown":      "#!/bin/sh\necho \"$0: usage: unknown -m FILE\" >&2; exit 2\n",
		"minus-one":    "#!/bin/sh\nexit 255\n",
		"same":         "-> answers",
		"asked":        "#!/bin/sh\necho \"version $*\"\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Trial{
		{Entry: "answers", Version: "version: 10605 (86c33b5d5)", Answered: true, Commits: []string{"86c33b5d5"}},
		{Entry: "asked", Version: "version --version", Answered: true},
		{Entry: "first-line", Version: "[1mtool 7", Answered: true},
		{Entry: "minus-one", Status: 255},
		{Entry: "same", Version: "version: 10605 (86c33b5d5)", Answered: true, Commits: []string{"86c33b5d5"}},
		{Entry: "says-nothing", Answered: true},
		{Entry: "unknown", Status: 2, Said: "unknown: usage: unknown -m FILE"},
	}
	if diff := cmp.Diff(want, trials); diff != "" {
		t.Error(diff)
	}
	if got := printed["answers"]; got != "load_backend: loaded CPU\nversion: 10605 (86c33b5d5)\n" || printed["same"] != got || len(printed) != 5 {
		t.Errorf("printed %q", printed)
	}
}

// Nothing of this process reaches a program: no variable, no input, no folder.
func TestTrialGivesNothing(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "/tmp")
	_, printed, err := tryPrograms(t, time.Minute, map[string]string{
		"environment": "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ; echo end\n",
		"input":       "#!/bin/sh\nreadlink /proc/$$/fd/0; cat\n",
		"folder":      "#!/bin/sh\nreadlink /proc/$$/cwd\n",
		"group":       "#!/bin/sh\nread -r a b c d pgrp rest </proc/$$/stat; test $pgrp = $$ && echo own\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"environment": "end\n", "input": "/dev/null\n", "folder": "/\n", "group": "own\n"}
	if diff := cmp.Diff(want, printed); diff != "" {
		t.Error(diff)
	}
}

func TestTrialFails(t *testing.T) {
	const ok = "#!/bin/sh\n"
	for name, c := range map[string]struct {
		text  string
		limit time.Duration
		want  string
	}{
		"library missing":   {"#!/bin/sh\necho 'a: error while loading shared libraries: libx.so.1' >&2; exit 127\n", 0, `entry point p: p --version ended with status 127: .*it said: a: error while loading shared libraries: libx\.so\.1`},
		"C library too old": {"#!/bin/sh\necho \"p: /lib/libc.so.6: version \\`GLIBC_2.99' not found (required by p)\" >&2; exit 1\n", 0, `ended with status 1: a library of this machine is too old.*GLIBC_2\.99`},
		"not executable":    {"#!/bin/sh\nexec /etc/passwd\n", 0, `ended with status 126`},
		"crash":             {"#!/bin/sh\necho last words\nkill -SEGV $$\n", 0, `was killed by signal 11 .*it said: last words`},
		"child crashes":     {"#!/bin/sh\nsh -c 'kill -ILL $$'; exit $?\n", 0, `ended with status 132: a program that it started was killed by signal 4`},
		"hang":              {"#!/bin/sh\necho waiting\nsleep 600 & wait\n", 300 * time.Millisecond, `has not ended after 300ms and was killed: it said: waiting`},
		"no interpreter":    {"#!/nowhere/sh\n", 0, `does not start: the interpreter`},
		"no program":        {"text\n", 0, `does not start: it is no program of this kind of machine`},
		"many lines":        {"#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 127\n", 0, `it said: line 19995 \| line 19996 \| line 19997 \| line 19998 \| line 19999\n`},
		"no variable HOME":  {"#!/bin/sh\n: \"${HOME:?is not set}\"; kill -9 $$\n", 0, ``},
	} {
		t.Run(name, func(t *testing.T) {
			if c.limit == 0 {
				c.limit = time.Minute
			}
			trials, _, err := tryPrograms(t, c.limit, map[string]string{"p": c.text, "q": ok})
			if c.want == "" { // it starts, and ends with an error of its own
				if err != nil || trials[0].Answered {
					t.Errorf("got %+v, %v", trials, err)
				}
				return
			}
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "--no-run") {
				t.Fatalf("got %+v, %v", trials, err)
			}
			if !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("got %q, want it to match %q", err, c.want)
			}
		})
	}
	if _, _, err := tryPrograms(t, time.Minute, map[string]string{"p": "#!/bin/sh\nexit 1\n", "q": "#!/bin/sh\nexit 2\n"}); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "no entry point answers") {
		t.Errorf("nobody answers: %v", err)
	}
	if trials, _, err := tryPrograms(t, time.Minute, nil); err != nil || len(trials) != 0 {
		t.Errorf("no entry points: %v, %v", trials, err)
	}
}

// Of megabytes the beginning and the end are kept.
func TestTrialPrintsMuch(t *testing.T) {
	_, printed, err := tryPrograms(t, time.Minute, map[string]string{"p": "#!/bin/sh\necho version 7\nhead -c 5000000 /dev/zero | tr '\\0' x\necho; echo last\n"})
	if err != nil {
		t.Fatal(err)
	}
	got := printed["p"]
	if len(got) != maxSaid+maxSaidEnd || !strings.HasPrefix(got, "version 7\nxxx") || !strings.HasSuffix(got, "xxx\nlast\n") {
		t.Errorf("%d bytes, from %.20q", len(got), got)
	}
}

// What a program leaves running ends with it, and does not keep the build
// waiting.
func TestTrialLeavesNothingRunning(t *testing.T) {
	dir := t.TempDir()
	pid := func(name string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	_, printed, err := tryPrograms(t, time.Minute, map[string]string{
		"forks":   fmt.Sprintf("#!/bin/sh\nsleep 1000 & echo $! >%s/forked; echo version 1\n", dir),
		"ignores": fmt.Sprintf("#!/bin/sh\ntrap '' TERM INT HUP; (trap '' TERM; exec sleep 1000) & echo $! >%s/ignores; echo version 2\n", dir),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"forks", "ignores"} {
		if want := fmt.Sprintf("version %d\n", i+1); printed[name] != want {
			t.Errorf("%s said %q, want %q", name, printed[name], want)
		}
	}
	for _, name := range []string{"forked", "ignores"} {
		// The kernel ends it a moment after the signal, and someone else reaps it.
		for range 500 {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid(name)))
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid(name))); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("%s is still there: %s", name, stat)
		}
	}
}

func TestTrialStopsWithContext(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	tr := &trial{manifest: &packager.Manifest{EntryPoints: map[string]string{"p": "p"}}, limit: time.Minute}
	if _, _, err := tr.run(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What the host lacks is named beside the program that does not start for it.
func TestTrialNamesHostRequirement(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p"), []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr := &trial{
		manifest: &packager.Manifest{
			Flavour: "hrx", ID: "1", EntryPoints: map[string]string{"p": "p"}, Machine: "x86_64",
			HostLibraries: []packager.HostLibrary{{Name: "libamdhip64.so.7", NeededBy: "p", Dirs: []string{"/opt/rocm-therock/lib"}}},
		},
		limit: time.Minute, host: linkage.Host{Root: t.TempDir(), Machine: "x86_64"},
	}
	_, _, err := tr.run(context.Background(), dir)
	if !errors.Is(err, ErrUnfit) || !regexp.MustCompile(`\np needs libamdhip64\.so\.7.*\n.*a machine that has what it asks of its host`).MatchString(err.Error()) || !strings.Contains(err.Error(), "--no-run") {
		t.Errorf("got %v", err)
	}
}

// A program sees a package as it is installed: read-only, and elsewhere.
func TestTrialIsElsewhere(t *testing.T) {
	e := &elfTree{t: t, dir: t.TempDir()}
	e.write(server, "#!/bin/sh\nself=$(readlink -f \"$0\"); echo version $self $(stat -c %a \"$self\" \"${self%/*}\")\n", 0o755)
	b := mustUnpack(t, mustBuild(t, options(t, e.dir, elfRecipe("", server))))
	said := b.Trials[0].Version
	if strings.Contains(said, e.dir) || !strings.HasSuffix(said, "/hrx/bin/server 555 555") {
		t.Errorf("it said %q", said)
	}
	if _, err := os.Lstat(strings.Fields(said)[1]); err == nil {
		t.Error("it is still there")
	}
}
