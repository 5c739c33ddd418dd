package acceptance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

// starts lists the lives of a run.
func starts(t *testing.T, dir string) []startRecord {
	t.Helper()
	var list []startRecord
	eachRecord(t, dir, func(r *record) {
		if r.Kind == recordStart {
			s, err := decode[startRecord](r.line)
			if err != nil {
				t.Error(err)
				return
			}
			list = append(list, *s)
		}
	})
	return list
}

// Lives of several arms take turns, each in a folder of its own; a fault ends
// its life alone where the plan says so.
func TestLivesTakeTurns(t *testing.T) {
	p := fakePackage(t, "works")
	arms := "arms:\n- {name: a, lives: 3}\n- {name: b, role: control, lives: 2, env: {FAKE_ENGINE_FAULT: 'null@4'}}\n"
	for after, want := range map[string][]string{
		AfterFaultGoOn: {"a1", "b1", "a2", "b2", "a3"},
		AfterFaultStop: {"a1", "b1"},
	} {
		t.Run(after, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "evidence")
			plan := fakePlan(t, p, "", arms+"attempts: 7\nafter_fault: "+after+"\nload: {requests: 24, prompt_tokens: [24], n_predict: [20]}\n")
			v := soak(t, RunOptions{Plan: plan, Package: p, Evidence: dir})
			var got []string
			for _, s := range starts(t, dir) {
				got = append(got, s.Name+string(rune('0'+s.Life)))
				if _, err := os.Stat(filepath.Join(ArmDir(dir, s.Arm), AnswersName)); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lives (-want +got):\n%s", diff)
			}
			if v.Verdict != Fail || !strings.HasPrefix(v.Reason, "fault(nan-wire)") {
				t.Errorf("%s: %s", v.Verdict, v.Reason)
			}
		})
	}
}

// gttRoot is a host with a GPU, and no processes.
func gttRoot(t *testing.T) (root string, set func(bytes string)) {
	t.Helper()
	root = t.TempDir()
	card := filepath.Join(root, "sys/class/drm/card1/device")
	if err := errors.Join(os.MkdirAll(card, 0o755), os.Mkdir(filepath.Join(root, "proc"), 0o755)); err != nil {
		t.Fatal(err)
	}
	set = func(bytes string) {
		replaceFile(t, filepath.Join(card, "mem_info_gtt_used"), bytes+"\n")
	}
	return root, set
}

// What grows while the load goes on is not the engine's doing alone: the life
// says nothing.
func TestWatchdogOfGTTGrowth(t *testing.T) {
	root, set := gttRoot(t)
	set("1073741824")
	p := fakePackage(t, "works")
	plan := fakePlan(t, p, "", "watchdogs: {gtt_growth_gib: 24}\nload: {duration: 1m, prompt_tokens: [24], n_predict: [20]}\n")
	v := soak(t, RunOptions{Plan: plan, Package: p, Root: root, Progress: func(s Progress) {
		if s.Requests > 10 {
			set("27917287424") // 26 GiB
		}
	}})
	if v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, "invalid(watchdog)") || !strings.Contains(v.Reason, "gtt-growth") {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
}

// A life that would begin with the memory of the one before still taken is not
// begun.
func TestMemoryThatIsNotGivenBack(t *testing.T) {
	root, set := gttRoot(t)
	set("1073741824")
	before := readHostFacts(root).GTTUsedGiB
	if missing := awaitGTT(t.Context(), root, before, time.Minute); missing != "" {
		t.Error(missing)
	}
	set("4294967296")
	if missing := awaitGTT(t.Context(), root, before, 10*time.Millisecond); !strings.Contains(missing, "4.0 GiB of GTT are in use, 1.0 were before") {
		t.Errorf("%q", missing)
	}
	if missing := awaitGTT(t.Context(), root, nil, time.Minute); missing != "" {
		t.Errorf("without a sensor: %s", missing)
	}
	p := fakePackage(t, "works")
	w := newWalk(RunOptions{Plan: fakePlan(t, p, "", ""), Evidence: t.TempDir(), Now: time.Now}.withDefaults(), &resolved{Arms: make([]resolvedArm, 1)}, "test", nil)
	var err error
	if w.ledger, err = createLedger(w.o.Evidence, time.Now); err != nil {
		t.Fatal(err)
	}
	l, err := newLife(w, w.lives[0], startRecord{Arm: 1, Name: "candidate", Life: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.refuse(endRecord{Why: whyTeardown, Detail: "4 GiB are missing"}); err != nil {
		t.Fatal(err)
	}
	size, err := w.ledger.size()
	if err != nil {
		t.Fatal(err)
	}
	state, err := judgeLife(w.plan.of(w.lives[0]), w.faces, filepath.Join(w.o.Evidence, LedgerName), 0, size)
	if err != nil || state.State != stateInvalid || state.Reason != "invalid(teardown)" {
		t.Errorf("%+v, %v", state, err)
	}
}

func TestMapped(t *testing.T) {
	p := fakePackage(t, "works")
	proc := t.TempDir()
	dir := filepath.Join(proc, "42")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	maps := strings.NewReplacer("PKG", p.Path).Replace(`5500-5600 r--p 00000000 08:01 1 PKG/lib/ld-linux-x86-64.so.2
5600-5700 r-xp 00001000 08:01 1 PKG/lib/ld-linux-x86-64.so.2
5700-5800 r-xp 00001000 08:01 2 PKG/lib/libllama.so.0
5800-5900 r-xp 00001000 08:01 3 PKG/bin/llama server
5900-5a00 r-xp 00001000 08:01 4 /usr/lib/libc.so.6
5a00-5b00 rw-p 00001000 08:01 4 PKG/data
7ffc-7ffd r-xp 00000000 00:00 0 [vdso]
`)
	if err := os.WriteFile(filepath.Join(dir, "maps"), []byte(maps), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(p.Path, "lib/ld-linux-x86-64.so.2"), filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
	m := mapped(t.Context(), proc, 42, p)
	if m.program.Name != "bin/llama server" {
		t.Errorf("the program is %q", m.program.Name)
	}
	if diff := cmp.Diff([]string{"/usr/lib/libc.so.6"}, m.foreign); diff != "" {
		t.Errorf("from outside (-want +got):\n%s", diff)
	}
	if m := mapped(t.Context(), proc, 43, p); m.program.Name != "" {
		t.Errorf("a process that is gone runs %+v", m.program)
	}
}

// A server that aborts because it was told to end is no fault; before that it is.
func TestAbortAtOurEnd(t *testing.T) {
	for stopped, want := range map[bool]string{true: "", false: whyFault} {
		p := fakePackage(t, "works")
		w := newWalk(RunOptions{Plan: fakePlan(t, p, "", ""), Evidence: t.TempDir(), Now: time.Now}.withDefaults(), &resolved{Arms: make([]resolvedArm, 1)}, "test", nil)
		var err error
		if w.ledger, err = createLedger(w.o.Evidence, time.Now); err != nil {
			t.Fatal(err)
		}
		l, err := newLife(w, w.lives[0], startRecord{Arm: 1, Name: "candidate", Life: 1})
		if err != nil {
			t.Fatal(err)
		}
		ev, ok := engine.ParseLogLine("terminate called without an active exception")
		if !ok {
			t.Fatal("the line is none")
		}
		if l.line(ev, stopped); l.reason() != want {
			t.Errorf("told to end %v: the life ends for %q, want %q", stopped, l.reason(), want)
		}
	}
}
