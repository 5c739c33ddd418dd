package fleet

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

func TestLive(t *testing.T) {
	d, pl := dataHome(t, "1bit-hrx-a/bin/s", "1bit-hrx-b/bin/s")
	a, b := d+"/1bit-hrx-a", d+"/1bit-hrx-b"
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	env := func(pkg string) []string { return []string{"PWD=" + b, serverVariable + "=" + pkg + "/bin/s"} }
	main := procInfo{pid: 1, since: at(1), exe: "/usr/bin/dash", argv: []string{"/bin/sh", "/opt/1bit"}, env: env(a)}
	script := procInfo{pid: 2, parent: 1, since: at(2), exe: "/usr/bin/dash", argv: []string{"/bin/sh", b + "/bin/s"}, env: env(a)}
	loader := procInfo{pid: 3, parent: 1, since: at(3), exe: "/lib/ld.so", maps: []string{"/lib/ld.so", b + "/lib/x.so (deleted)"}, env: env(a)}
	shell := procInfo{pid: 4, parent: 1, since: at(4), exe: "/usr/bin/dash", argv: []string{"/bin/sh"}, env: env(a)}
	worker := procInfo{pid: 5, parent: 3, since: at(1), exe: a + "/bin/s"}
	astray := []string{"LD_LIBRARY_PATH=" + a + "/lib", serverVariable + "=/x/llama-server"}
	outside := procInfo{pid: 1, since: at(1), exe: "/usr/bin/dash", argv: []string{"/bin/sh", "/opt/1bit"}, env: astray}
	other := procInfo{pid: 7, parent: 1, since: at(2), exe: "/x/llama-server", maps: []string{a + "/lib/x.so"}, env: astray}
	packaged := procInfo{pid: 1, since: at(1), exe: "/usr/bin/dash", argv: []string{"/bin/sh", a + "/1bit", "serve"}, env: env(a)}
	forked := procInfo{pid: 6, parent: 1, since: at(2), exe: "/usr/bin/dash", argv: []string{"/bin/sh", a + "/1bit", "serve"}, env: env(a)}
	for _, tt := range []struct {
		name        string
		procs       []procInfo
		main, child string
		childPID    int
		runs        string
	}{
		{"front end alone", []procInfo{main}, "hrx-a", "", 0, "hrx-a"},
		{"a script as the child", []procInfo{main, script}, "hrx-a", "hrx-b", 2, "hrx-b"},
		{"a child through a loader, its files gone", []procInfo{loader, main}, "hrx-a", "hrx-b", 3, "hrx-b"},
		{"a shell on its way", []procInfo{main, shell}, "hrx-a", "hrx-a", 4, "hrx-a"},
		{"a shell beside the server", []procInfo{main, shell, loader}, "hrx-a", "hrx-b", 3, "hrx-b"},
		{"a script about to ask another program", []procInfo{packaged, forked}, "hrx-a", "", 0, "hrx-a"},
		{"the same beside the server", []procInfo{packaged, forked, loader}, "hrx-a", "hrx-b", 3, "hrx-b"},
		{"the server's own child", []procInfo{main, worker, loader}, "hrx-a", "hrx-b", 3, "hrx-b"},
		{"no main process", []procInfo{loader}, "", "hrx-b", 3, "hrx-b"},
		{"the server itself", []procInfo{{pid: 1, exe: b + "/bin/s"}}, "hrx-b", "", 0, "hrx-b"},
		{"its server lies elsewhere", []procInfo{outside, other}, "", "", 7, ""},
		{"its main process does, with the package's libraries", []procInfo{{pid: 1, exe: "/x/llama-server", maps: []string{a + "/lib/x.so"}, env: env(a)}}, "", "", 0, ""},
		{"no package", []procInfo{{pid: 1, exe: "/usr/bin/sleep", env: []string{"PWD=" + a, "A=1"}}}, "", "", 0, ""},
	} {
		l := liveOf(tt.procs, 1, pl, []string{serverVariable})
		name := func(p *Process) string {
			if p == nil {
				return ""
			}
			return p.Package
		}
		runs, _ := l.runs()
		if name(l.Main) != tt.main || name(l.Child) != tt.child || runs.Name != tt.runs {
			t.Errorf("%s: main %q, child %q, runs %q", tt.name, name(l.Main), name(l.Child), runs.Name)
		}
		if l.Child != nil && l.Child.PID != tt.childPID {
			t.Errorf("%s: child is process %d, want %d", tt.name, l.Child.PID, tt.childPID)
		}
	}
	// An engine that is started directly is what it is; what the manager hands to everybody is no evidence.
	if l := liveOf([]procInfo{{pid: 1, exe: b + "/llama-server", env: []string{"LD_LIBRARY_PATH=" + a + "/lib"}}}, 1, pl, []string{"LD_LIBRARY_PATH"}); l.Main.Package != "hrx-b" {
		t.Errorf("an engine with the libraries of another: %+v", l.Main)
	}
	pl.inherited = map[string]string{"GIVEN": a + "/s", serverVariable: b + "/s"}
	given := procInfo{pid: 1, exe: "/usr/bin/sleep", env: []string{"PATH=" + a + ":/usr/bin", "GIVEN=" + a + "/s", serverVariable + "=" + b + "/s"}}
	if l := liveOf([]procInfo{given}, 1, pl, nil); l.Main.Package != "" {
		t.Errorf("by the manager's own environment: %+v", l.Main)
	}
	if l := liveOf([]procInfo{given}, 1, pl, []string{serverVariable}); l.Main.Package != "hrx-b" {
		t.Errorf("a front end by the manager's variable: %+v", l.Main)
	}
	pl.inherited = nil
	// Of several servers none hides another.
	two := liveOf([]procInfo{main, {pid: 2, parent: 1, since: at(2), exe: a + "/s"}, {pid: 3, parent: 1, since: at(3), exe: b + "/s"}}, 1, pl, []string{serverVariable})
	if refA, _ := pl.at(a); two.Child.Package != "hrx-a" || two.only(refA) || len(two.others) != 1 {
		t.Errorf("two servers: %+v", two)
	}
	// A unit without a main process can need a restart too.
	refA, _ := pl.at(a)
	if u := (&systemd.Unit{ActiveState: "active"}); !pending(u, liveOf([]procInfo{loader}, 0, pl, nil), refA) ||
		pending(u, liveOf([]procInfo{{pid: 3, exe: a + "/s"}}, 0, pl, nil), refA) {
		t.Error("restart pending without a main process")
	}
	if l := liveOf(nil, 0, pl, nil); l != nil {
		t.Errorf("nothing runs, got %+v", l)
	}
	if l := liveOf([]procInfo{{pid: 1, unreadable: true}}, 1, pl, nil); !l.Unreadable {
		t.Error("another user's process is not marked")
	}
}

func TestReadProcess(t *testing.T) {
	p, ok := readProcess("/proc", os.Getpid())
	if !ok {
		t.Fatal("this process is not there")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if p.exe != exe || p.parent != os.Getppid() || len(p.argv) != len(os.Args) || len(p.mapped()) == 0 {
		t.Errorf("read %+v", p)
	}
	if age := time.Since(p.since); age < -time.Minute || age > time.Hour {
		t.Errorf("started %v ago", age)
	}
	if _, ok := readProcess(t.TempDir(), 1); ok {
		t.Error("a process that is not there was read")
	}
}

func TestParseStat(t *testing.T) {
	for stat, want := range map[string]string{
		"7 (a) b (c) R) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 2": "S 3 4242",
		"7 (x": " 0 0",
		"":     " 0 0",
	} {
		state, parent, start := parseStat(stat)
		if got := state + " " + strconv.Itoa(parent) + " " + strconv.FormatInt(start, 10); got != want {
			t.Errorf("%q: %q, want %q", stat, got, want)
		}
	}
}

func TestUndeleted(t *testing.T) {
	real := filepath.Join(t.TempDir(), "v1 (deleted)")
	if err := os.WriteFile(real, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if path, gone := undeleted(real); path != real || gone {
		t.Errorf("a folder really named so reads %q %v", path, gone)
	}
	if path, gone := undeleted("/nowhere/x (deleted)"); path != "/nowhere/x" || !gone {
		t.Errorf("a removed file reads %q %v", path, gone)
	}
}

func FuzzParseProc(f *testing.F) {
	f.Add("7 (a) S 3", "00-01 r-xp 0 08:01 5 /a b (deleted)\n")
	f.Fuzz(func(t *testing.T, stat, maps string) {
		parseStat(stat)
		seen := map[string]bool{}
		for _, path := range parseMaps([]byte(maps)) {
			if path[0] != '/' || seen[path] {
				t.Fatalf("path %q", path)
			}
			seen[path] = true
		}
	})
}
