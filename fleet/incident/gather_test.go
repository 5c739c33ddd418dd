package incident

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// stage is a host that a test makes up: what its manager, its journal and its store tell.
type stageHost struct {
	inspection *fleet.Inspection
	err        error
	records    []fleet.Record
	journal    []systemd.Entry
	noJournal  error
	asked      []systemd.JournalQuery
	packages   []*store.Package
	begin      time.Time // of the run that ends; zero: the test's
}

const stageUnit = "llm.service"

var stageNow = time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC)

func (s *stageHost) Inspect(context.Context, ...string) ([]fleet.Inspection, error) {
	if s.inspection == nil {
		return nil, s.err
	}
	return []fleet.Inspection{*s.inspection}, s.err
}

func (s *stageHost) History(context.Context, string) ([]fleet.Record, error) { return s.records, nil }

func (s *stageHost) read(_ context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) ([]string, error) {
	s.asked = append(s.asked, q)
	if s.noJournal != nil {
		return nil, s.noJournal
	}
	for _, e := range s.journal {
		kernel := e.Fields["_TRANSPORT"] == "kernel"
		if q.Kernel != kernel || !kernel && e.Unit != q.Unit || len(q.IDs) > 0 && !slices.Contains(q.IDs, e.ID) ||
			e.At.Before(q.Since) || !q.Until.IsZero() && e.At.After(q.Until) {
			continue
		}
		if err := f(e); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// say adds an entry of the unit; with an id it is systemd's.
func (s *stageHost) say(at time.Time, invocation, id, message string, fields ...string) {
	e := systemd.Entry{
		At: at, Boot: "b", Monotonic: at.Sub(stageNow.Add(-100 * 24 * time.Hour)), Cursor: fmt.Sprintf("%08d", len(s.journal)), Message: message,
		ID: id, Unit: stageUnit, Invocation: invocation, Identifier: "llama-server", PID: 77, Priority: 6, Fields: map[string]string{},
	}
	if id != "" {
		e.Identifier, e.PID = "systemd", 1
	}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i]] = fields[i+1]
	}
	s.journal = append(s.journal, e)
}

// life is a run of the unit that ends by a signal.
func (s *stageHost) life(invocation string, begin, end time.Time, lines ...string) {
	s.say(begin, invocation, systemd.IDUnitStarting, "Starting", "JOB_TYPE", "start")
	s.say(begin, invocation, systemd.IDUnitStarted, "Started", "JOB_RESULT", "done")
	s.say(begin.Add(time.Millisecond), invocation, "", "build: 10605")
	for i, line := range lines {
		s.say(end.Add(time.Duration(i-len(lines))*time.Second), invocation, "", line)
	}
	s.say(end, invocation, systemd.IDProcessExited, "llm.service: Main process exited, code=killed, status=11/SEGV", "EXIT_CODE", "killed", "EXIT_STATUS", "11")
	s.say(end, invocation, systemd.IDFailureResult, "llm.service: Failed with result 'signal'.", "UNIT_RESULT", "signal")
}

func (s *stageHost) options(t *testing.T) GatherOptions {
	root := t.TempDir()
	putFile(t, filepath.Join(root, "proc/meminfo"), "MemTotal: 130000000 kB\nMemAvailable: 88815411 kB\n")
	return GatherOptions{
		Host: s, Unit: "llm", Journal: s.read, Root: root, Sensors: gpu.Sensors{Root: root}, Now: stageNow,
		Packages: func(context.Context) ([]*store.Package, error) { return s.packages, nil },
	}
}

func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (s *stageHost) gather(t *testing.T, change func(*GatherOptions)) *Evidence {
	t.Helper()
	o := s.options(t)
	if change != nil {
		change(&o)
	}
	e, err := Gather(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func messages(e *Evidence) []string {
	var out []string
	for _, entry := range e.Entries {
		out = append(out, entry.Message)
	}
	return out
}

// The start of a run is found also where it was long ago, with what the server said of itself then.
func TestGatherLongRun(t *testing.T) {
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	begin, end := stageNow.Add(-20*24*time.Hour), stageNow.Add(-time.Minute)
	s.life("a", begin, end, "slot release", "abort")
	e := s.gather(t, nil)
	if e.Ended == nil || !e.Ended.Equal(end) || !e.From.Equal(end.Add(-time.Hour)) || !e.To.Equal(stageNow) {
		t.Errorf("ended %v, window %v to %v", e.Ended, e.From, e.To)
	}
	want := []string{"Starting", "Started", "build: 10605", "slot release", "abort", "llm.service: Main process exited, code=killed, status=11/SEGV", "llm.service: Failed with result 'signal'."}
	if d := cmp.Diff(want, messages(e)); d != "" {
		t.Error(d)
	}
	r := Analyse(e)
	if r.Ending == nil || r.Ending.UptimeS == nil || *r.Ending.UptimeS < 19*24*3600 {
		t.Errorf("%+v", r.Ending)
	}
}

// A host that was started again is another one.
func TestGatherAfterABoot(t *testing.T) {
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	s.life("a", stageNow.Add(-3*time.Hour), stageNow.Add(-2*time.Hour), "abort")
	for boot, want := range map[time.Time]int{stageNow.Add(-time.Hour): 1, stageNow.Add(-4 * time.Hour): 0} {
		e := s.gather(t, func(o *GatherOptions) {
			putFile(t, filepath.Join(o.Root, "proc/stat"), fmt.Sprintf("cpu 1 2\nbtime %d\n", boot.Unix()))
		})
		if n := strings.Count(strings.Join(e.Missing, "\n"), "those of now"); n != want || !e.HostNow.Boot.Equal(boot) {
			t.Errorf("boot %v: %q", boot, e.Missing)
		}
	}
}

// A death, and the restarts that fail after it until systemd gives up, are one event.
func TestGatherBurst(t *testing.T) {
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	s.life("old", stageNow.Add(-40*time.Hour), stageNow.Add(-30*time.Hour), "other story")
	first := stageNow.Add(-time.Hour)
	s.life("a", first.Add(-6*time.Hour), first, "the abort")
	for i := range 5 {
		begin := first.Add(time.Duration(i)*10*time.Second + 2*time.Second)
		s.life(fmt.Sprint("b", i), begin, begin.Add(time.Second), "no memory")
	}
	last := first.Add(time.Minute)
	s.say(last, "c", systemd.IDFailureResult, "llm.service: Failed with result 'start-limit-hit'.", "UNIT_RESULT", "start-limit-hit")
	e := s.gather(t, nil)
	if e.Ended == nil || !e.Ended.Equal(last) || !e.From.Equal(first.Add(-time.Hour)) || !e.To.Equal(last.Add(5*time.Minute)) {
		t.Errorf("ended %v, window %v to %v", e.Ended, e.From, e.To)
	}
	if got := messages(e); !slices.Contains(got, "the abort") || slices.Contains(got, "other story") {
		t.Errorf("%q", got)
	}
	// Ends before Since do not count; what systemd tells of them is there.
	if e := s.gather(t, func(o *GatherOptions) { o.Since = stageNow.Add(-time.Minute) }); e.Ended != nil || len(e.Entries) == 0 {
		t.Errorf("ended %v", e.Ended)
	}
	// Nor does what came after Until.
	e = s.gather(t, func(o *GatherOptions) { o.Until = stageNow.Add(-20 * time.Hour) })
	if e.Ended == nil || !e.Ended.Equal(stageNow.Add(-30*time.Hour)) || !slices.Contains(messages(e), "other story") {
		t.Errorf("ended %v, %q", e.Ended, messages(e))
	}
}

// A stop that someone asked for, with a status that systemd takes for a failure, hides no death before it.
func TestGatherPassesOverStops(t *testing.T) {
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	death, stop := stageNow.Add(-5*time.Hour), stageNow.Add(-time.Minute)
	s.life("a", death.Add(-time.Hour), death, "the abort")
	s.say(death.Add(time.Second), "b", systemd.IDUnitStarting, "Starting", "JOB_TYPE", "start")
	s.say(death.Add(time.Second), "b", systemd.IDUnitStarted, "Started", "JOB_RESULT", "done")
	s.say(stop.Add(-time.Second), "b", systemd.IDUnitStopping, "Stopping", "JOB_TYPE", "restart")
	s.say(stop, "b", systemd.IDProcessExited, "llm.service: Main process exited, code=exited, status=143/n/a", "EXIT_CODE", "exited", "EXIT_STATUS", "143")
	s.say(stop, "b", systemd.IDFailureResult, "llm.service: Failed with result 'exit-code'.", "UNIT_RESULT", "exit-code")
	s.say(stop, "b", systemd.IDUnitStopped, "Stopped")
	e := s.gather(t, nil)
	if e.Ended == nil || !e.Ended.Equal(death) || !slices.Contains(messages(e), "the abort") {
		t.Errorf("ended %v, %q", e.Ended, messages(e))
	}
	if r := Analyse(e); r.Ending == nil || r.Ending.Signal != "SIGSEGV" {
		t.Errorf("%+v", r.Ending)
	}
}

// A server that its front end outlives dies without a word of systemd's: its log tells, and the main process says which
// package it was.
func TestGatherServerUnderAFrontEnd(t *testing.T) {
	began := time.Date(2026, 10, 23, 10, 0, 0, 0, time.UTC)
	s := &stageHost{
		inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit, Live: &fleet.Live{
			Main:  &fleet.Process{Package: "hrx-aaaaaaa", Path: "/data/1bit-hrx-aaaaaaa", Since: began},
			Child: &fleet.Process{Package: "hrx-aaaaaaa", Path: "/data/1bit-hrx-aaaaaaa", Since: began.Add(7 * time.Second)},
		}}},
		packages: []*store.Package{stagePackage("hrx-aaaaaaa", "", began)},
	}
	s.journal = entriesOf(t, "== a"+serverStart+`
		10:00:05.0 1bit[20] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=5 of 9, index range [1..8], contiguous=no, continuing=no (engine#315)
		10:00:05.0 1bit[20] /src/common/sampling.cpp:600: HRX: NaN logits
		10:00:07.0 1bit[44] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'
		10:00:07.1 1bit[44] 0.01.000.000 I main: server is listening on http://127.0.0.1:8095`, false)
	e := s.gather(t, nil)
	if e.Ended == nil || !e.Ended.Equal(began.Add(5*time.Second)) || e.How != HowLive || !e.From.Equal(began.Add(5*time.Second-time.Hour)) {
		t.Errorf("ended %v, package by %q, window from %v", e.Ended, e.How, e.From)
	}
	if r := Analyse(e); r.Ending == nil || !r.Ending.Child {
		t.Errorf("%+v", r.Ending)
	}
}

// A journal that cannot be read leaves what the manager tells; without either there is nothing to tell.
func TestGatherWithoutAJournal(t *testing.T) {
	exited := stageNow.Add(-time.Minute)
	s := &stageHost{
		noJournal: fmt.Errorf("%w: it is kept nowhere", systemd.ErrNoJournal),
		inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}, Loaded: &systemd.Unit{
			ID: stageUnit, Result: "signal", ExecMainCode: 2, ExecMainStatus: 11, InvocationID: "a", MainStarted: exited.Add(-time.Hour), MainExited: exited,
		}},
	}
	e := s.gather(t, nil)
	if e.Ended == nil || !e.Ended.Equal(exited) || e.State.MainStatus != 11 {
		t.Errorf("ended %v, state %+v", e.Ended, e.State)
	}
	if n := strings.Count(strings.Join(e.Missing, "\n"), "it is kept nowhere"); n != 2 {
		t.Errorf("missing, once for the unit and once for the kernel: %q", e.Missing)
	}
	s.inspection, s.err = nil, fmt.Errorf("%w: llm.service", systemd.ErrNoUnit)
	if _, err := Gather(t.Context(), s.options(t)); !errors.Is(err, systemd.ErrNoUnit) {
		t.Error(err)
	}
	// A unit whose files are gone is told by its log.
	s.noJournal = nil
	s.life("a", stageNow.Add(-time.Hour), exited, "abort")
	if e := s.gather(t, nil); e.Ended == nil || !strings.Contains(strings.Join(e.Missing, "\n"), "no such unit") {
		t.Errorf("ended %v, missing %q", e.Ended, e.Missing)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Gather(ctx, s.options(t)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A service that wrote without end is kept near its end, and the report says so.
func TestGatherIsBounded(t *testing.T) {
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	begin, end := stageNow.Add(-3*time.Hour), stageNow.Add(-10*time.Minute)
	s.life("a", begin, end, "the abort")
	const every = 20 * time.Millisecond
	line := strings.Repeat("x", 100)
	flood := func(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) ([]string, error) {
		if q.Kernel || len(q.IDs) > 0 {
			return s.read(ctx, q, f)
		}
		from, until := begin.Add(time.Second), end.Add(3*time.Minute)
		if q.Since.After(from) {
			from = q.Since.Truncate(every)
		}
		if q.Until.Before(until) {
			until = q.Until
		}
		for at := from; !at.After(until); at = at.Add(every) {
			if err := f(systemd.Entry{At: at, Cursor: fmt.Sprint(at.UnixNano()), Message: line, Unit: stageUnit, Invocation: "a", Fields: map[string]string{"_HOSTNAME": line}}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	e := s.gather(t, func(o *GatherOptions) { o.Journal = flood })
	if n := len(e.Entries); n > keepHead+keepBefore+keepAfter+keepTold || n < keepBefore {
		t.Errorf("%d entries", n)
	}
	gaps := strings.Join(e.Gaps, "\n")
	for _, want := range []string{"of what came before 2026-10-23 11:50:00Z the last 10000 entries are kept", "of what came after 2026-10-23 11:50:00Z the first 3000 entries are kept, 6000 are not"} {
		if !strings.Contains(gaps, want) {
			t.Errorf("the gaps do not say %q: %s", want, gaps)
		}
	}
	var total int
	for _, entry := range e.Entries {
		total += size(entry)
		if len(entry.Fields) > 0 && entry.Identifier != "systemd" {
			t.Fatalf("fields that nobody needs are kept: %v", entry.Fields)
		}
	}
	if total > 4*keepBytes {
		t.Errorf("%d bytes", total)
	}
	if last := e.Kept[len(e.Kept)-1]; !last.From.After(end.Add(-time.Hour)) || last.To.After(end.Add(2*time.Minute)) {
		t.Errorf("kept %v", e.Kept)
	}
	long := slim(systemd.Entry{Message: strings.Repeat("y", maxMessage+1)}, 1)
	if len(long.Message) != maxMessage || !strings.Contains(long.Missing, "65537 bytes") {
		t.Errorf("%d bytes, %q", len(long.Message), long.Missing)
	}
}

func stagePackage(name, ver string, installed time.Time, fixes ...string) *store.Package {
	flavour, id, _ := strings.Cut(name, "-")
	m := &packager.Manifest{Schema: packager.Schema, Flavour: flavour, ID: id, Version: ver, Components: []packager.Component{{Name: "engine", Commit: id}}}
	yes, no := true, false
	for _, f := range fixes {
		carried := &yes
		if rest, ok := strings.CutPrefix(f, "!"); ok {
			f, carried = rest, &no
		}
		if rest, ok := strings.CutPrefix(f, "?"); ok {
			f, carried = rest, nil
		}
		m.Fixes = append(m.Fixes, packager.Fix{ID: f, Carried: carried})
	}
	return &store.Package{Manifest: m, Name: name, Digest: "sha256:" + name, Path: "/data/1bit-" + name, InstalledAt: installed, State: store.StateOK}
}

func TestWhichPackageItWas(t *testing.T) {
	begin, end := stageNow.Add(-6*time.Hour), stageNow.Add(-time.Minute)
	switched := func(at time.Time, from, to string) fleet.Record { return fleet.Record{At: at, From: from, To: to} }
	for _, test := range []struct {
		name    string
		change  func(s *stageHost, lines *[]string)
		want    string
		how     string
		missing string
	}{
		{"armed", func(*stageHost, *[]string) {}, "hrx-bbbbbbb", HowArmed, ""},
		{"switched after it began", func(s *stageHost, _ *[]string) {
			s.records = []fleet.Record{switched(begin.Add(-time.Hour), "", "hrx-aaaaaaa"), switched(begin.Add(time.Hour), "hrx-aaaaaaa", "hrx-bbbbbbb")}
		}, "hrx-aaaaaaa", HowHistory, ""},
		{"first switched after it began", func(s *stageHost, _ *[]string) {
			s.records = []fleet.Record{switched(begin.Add(time.Hour), "hrx-aaaaaaa", "hrx-bbbbbbb")}
		}, "hrx-aaaaaaa", HowHistory, ""},
		{"the program that wrote", func(s *stageHost, lines *[]string) {
			s.records = []fleet.Record{switched(begin.Add(-time.Hour), "", "hrx-bbbbbbb")}
			*lines = []string{"EXE /data/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server"}
		}, "hrx-aaaaaaa", HowLog, ""},
		{"a path in the backtrace", func(s *stageHost, lines *[]string) {
			*lines = []string{"#1 0x00007f in ggml_abort (/data/1bit-hrx-aaaaaaa/hrx/llama/bin/libggml-base.so+0x1f)"}
		}, "hrx-aaaaaaa", HowLog, ""},
		{"a crash of the run before the switch, minutes earlier", func(s *stageHost, lines *[]string) {
			first := end.Add(-5 * time.Minute)
			s.life("old", begin.Add(-time.Hour), first, "EXE /data/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server")
			s.begin = first.Add(time.Minute)
			*lines = []string{"EXE /data/1bit-hrx-bbbbbbb/hrx/llama/bin/llama-server"}
		}, "hrx-bbbbbbb", HowLog, ""},
		{"a prompt names a package", func(s *stageHost, lines *[]string) {
			*lines = []string{"prompt: see /data/1bit-hrx-zzzzzzz/hrx/readme please"}
		}, "hrx-bbbbbbb", HowArmed, ""},
		{"installed since", func(s *stageHost, lines *[]string) {
			s.packages[0].InstalledAt = begin.Add(time.Hour)
			*lines = []string{"EXE /data/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server"}
		}, "hrx-aaaaaaa", HowLog, "may be those of another build"},
		{"a package that is gone", func(s *stageHost, lines *[]string) {
			*lines = []string{"EXE /data/1bit-hrx-0000000/hrx/llama/bin/llama-server (deleted)"}
		}, "hrx-0000000", HowLog, "is no longer installed"},
		{"no package in the log", func(s *stageHost, lines *[]string) {
			*lines = []string{"EXE /usr/bin/llama-server", "model /data/1bit-models/x.gguf"}
		}, "hrx-bbbbbbb", HowArmed, ""},
		{"a main process that outlived its server", func(s *stageHost, _ *[]string) {
			s.inspection.Live = &fleet.Live{Main: &fleet.Process{Package: "hrx-aaaaaaa", Path: "/data/1bit-hrx-aaaaaaa", Since: begin}}
		}, "hrx-aaaaaaa", HowLive, ""},
		{"a process of the next run", func(s *stageHost, _ *[]string) {
			s.inspection.Live = &fleet.Live{Main: &fleet.Process{Package: "hrx-aaaaaaa", Path: "/data/1bit-hrx-aaaaaaa", Since: end.Add(time.Second)}}
		}, "hrx-bbbbbbb", HowArmed, ""},
		{"a file that was changed since", func(s *stageHost, _ *[]string) {
			path := filepath.Join(t.TempDir(), "hrx.conf")
			putFile(t, path, "[Service]\n")
			if err := os.Chtimes(path, time.Time{}, begin.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			s.inspection.Loaded = &systemd.Unit{ID: stageUnit, FragmentPath: path}
		}, "hrx-bbbbbbb", HowArmed, "that may have had another"},
		{"nothing", func(s *stageHost, _ *[]string) { s.inspection.Armed = nil }, "", "", "nothing tells what the service ran from"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &stageHost{
				inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit, Armed: &fleet.Armed{Package: "hrx-bbbbbbb", Path: "/data/1bit-hrx-bbbbbbb"}}},
				packages:   []*store.Package{stagePackage("hrx-aaaaaaa", "", begin), stagePackage("hrx-bbbbbbb", "", begin)},
			}
			var lines []string
			test.change(s, &lines)
			s.life("a", cmpTime(s.begin, begin), end, lines...)
			for i := range s.journal {
				if exe, ok := strings.CutPrefix(s.journal[i].Message, "EXE "); ok {
					s.journal[i].Fields["_EXE"], s.journal[i].Message = exe, "a line"
				}
			}
			e := s.gather(t, nil)
			name := ""
			if e.Package != nil {
				name = e.Package.Name
			}
			if name != test.want || e.How != test.how {
				t.Errorf("%s by %q, want %s by %q", name, e.How, test.want, test.how)
			}
			if all := strings.Join(e.Missing, "\n"); (all != "") != (test.missing != "") || !strings.Contains(all, test.missing) {
				t.Errorf("missing %q, want %q", all, test.missing)
			}
		})
	}
}

func TestNewerPackages(t *testing.T) {
	at := func(days int) time.Time { return stageNow.Add(time.Duration(days) * 24 * time.Hour) }
	ours := stagePackage("hrx-aaaaaaa", "2026.43.0", at(-10), "engine#1", "!engine#2", "?engine#3")
	broken := stagePackage("hrx-ddddddd", "2026.46.0", at(-1), "engine#2")
	broken.State = store.StateBroken
	all := []*store.Package{
		ours, broken,
		stagePackage("hrx-bbbbbbb", "2026.44.0", at(-20), "engine#1", "engine#2", "engine#3"), // newer by version, whenever it was installed
		stagePackage("hrx-ccccccc", "2026.42.0", at(-1), "engine#2"),
		stagePackage("hrx-eeeeeee", "", at(-2), "engine#1", "?engine#2"), // has no version
		stagePackage("vulkan-fffffff", "2026.45.0", at(-1), "engine#2"),
	}
	var got []string
	for _, p := range newer(ours, all) {
		got = append(got, fmt.Sprint(p.Name, p.Gained))
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"hrx-bbbbbbb[engine#2 engine#3]", "hrx-eeeeeee[]"}, got); d != "" {
		t.Error(d)
	}
}
