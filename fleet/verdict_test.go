package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

func TestEnding(t *testing.T) {
	for want, u := range map[string]systemd.Unit{
		"READY=1 did not come within TimeoutStartSec=1m30s (Type=notify)": {Result: "timeout", Type: "notify", TimeoutStart: 90 * time.Second, ExecMainCode: 2, ExecMainStatus: 15},
		"it was not ready within its start limit of 2s":                   {Result: "timeout", Type: "forking", TimeoutStart: 2 * time.Second},
		"exited with status 1": {Result: "exit-code", ExecMainCode: 1, ExecMainStatus: 1},
		"exited with status 203: its program could not be executed": {Result: "exit-code", ExecMainCode: 1, ExecMainStatus: 203},
		"its capabilities could not be set up":                      {Result: "exit-code", ExecMainCode: 1, ExecMainStatus: 218},
		"killed by signal 6 (SIGABRT)":                              {Result: "core-dump", ExecMainCode: 3, ExecMainStatus: 6},
		"for want of memory":                                        {Result: "oom-kill", ExecMainCode: 2, ExecMainStatus: 9},
		"watchdog":                                                  {Result: "watchdog", ExecMainCode: 2, ExecMainStatus: 6},
		"started too often":                                         {Result: "start-limit-hit", ExecMainCode: 1, ExecMainStatus: 1},
		"ExecStartPre=":                                             {Result: "exit-code"},
	} {
		if got := ending(&u); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
	started := time.Date(2026, 10, 23, 10, 0, 0, 0, time.UTC)
	late := systemd.Unit{Result: "timeout", Type: "simple", TimeoutStart: 90 * time.Second, MainStarted: started, ActiveLeft: started.Add(6 * time.Second)}
	if got := ending(&late); !strings.Contains(got, "RuntimeMaxSec=") || strings.Contains(got, "start limit") {
		t.Errorf("of what was ready: %q", got)
	}
	if got := ending(&systemd.Unit{Result: "success"}); got != "" {
		t.Errorf("one that lives ended: %q", got)
	}
}

// The wait for a job is never shorter than what systemd allows the start, and always ends.
func TestJobTime(t *testing.T) {
	h := Host{LoadDeadline: time.Minute}
	for _, tt := range []struct{ stop, start, least, most time.Duration }{
		{90 * time.Second, 90 * time.Second, 180 * time.Second, 200 * time.Second},
		{time.Second, time.Hour, time.Hour, time.Hour + 10*time.Second},
		{time.Second, time.Second, time.Minute, 70 * time.Second}, // it may ask for more (EXTEND_TIMEOUT_USEC)
		{0, 0, time.Minute, 3 * time.Minute},                      // infinity
	} {
		got := h.jobTime(&systemd.Unit{TimeoutStop: tt.stop, TimeoutStart: tt.start})
		if got < tt.least || got > tt.most {
			t.Errorf("stop %v, start %v: %v", tt.stop, tt.start, got)
		}
	}
}

func TestOtherBuild(t *testing.T) {
	pinned := func(name, commit string, declared bool) *packager.Manifest {
		return &packager.Manifest{Components: []packager.Component{{Name: "engine", Commit: "7871c71d"}, {Name: name, Commit: commit, Declared: declared}}}
	}
	for _, tt := range []struct {
		m    *packager.Manifest
		info string
		text bool
		sure bool
	}{
		{pinned("llama.cpp", "86c33b5d5f0e", false), "b10605-86c33b5d5", false, false},
		{pinned("llama.cpp", "86c33b5", false), "b10605-86c33b5d5", false, false},
		{pinned("llama.cpp", "00adc2b1234", false), "b10605-86c33b5d5", true, true},
		{pinned("llama.cpp", "00adc2b1234", true), "b10605-86c33b5d5", true, false},
		{pinned("llama.cpp", "00adc2b1234", false), "b11669-Debian", false, false},
		{pinned("llama.cpp", "00adc2b1234", false), "", false, false},
		{pinned("hrx-system", "00adc2b1234", false), "b10605-86c33b5d5", false, false},
		{nil, "b10605-86c33b5d5", false, false},
	} {
		text, sure := otherBuild(tt.m, tt.info)
		if (text != "") != tt.text || tt.text && sure != tt.sure {
			t.Errorf("%q: %q, sure %v", tt.info, text, sure)
		}
	}
}

func TestDevices(t *testing.T) {
	proc := t.TempDir()
	fd := filepath.Join(proc, "7", "fd")
	if err := os.MkdirAll(fd, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"0": "/dev/null", "3": "/dev/kfd", "4": "/dev/dri/renderD128", "5": "socket:[1]"} {
		if err := os.Symlink(target, filepath.Join(fd, name)); err != nil {
			t.Fatal(err)
		}
	}
	got := devices(proc, []procInfo{{pid: 7, maps: []string{"/lib/libc.so", "/dev/dri/renderD129"}}, {pid: 8}})
	if diff := cmp.Diff([]string{"/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/kfd"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		was, now []string
		want     string
	}{
		{nil, nil, ""}, {nil, got, ""}, {got, got[:1], ""}, {got, nil, "runs on the CPU"},
		{[]string{"/dev/dri/renderD128"}, []string{"/dev/dri/renderD129"}, "before on /dev/dri/renderD128"},
	} {
		if got := moved(tt.was, tt.now); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v to %v: %q", tt.was, tt.now, got)
		}
	}
	old, young := time.Unix(1, 0), time.Unix(2, 0)
	asked := askedDevice([]procInfo{
		{pid: 2, since: young, argv: []string{"llama-server", "--device=ROCm0", "-dev", "Vulkan1"}},
		{pid: 1, since: old, argv: []string{"1bit", "serve", "--device", "hrx"}},
	})
	if asked != "Vulkan1" {
		t.Errorf("asked for %q", asked)
	}
}

func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:8095", "127.0.0.1:8095", true}, {"127.0.0.1:8095", "127.0.0.1:8096", false}, {"0.0.0.0:1", "127.0.0.1:1", true},
		{"127.0.0.1:1", "127.0.0.2:1", false}, {"[::]:1", "127.0.0.1:1", true}, {"[::1]:1", "127.0.0.1:1", false},
		{"0.0.0.0:1", "[::1]:1", false}, {"0.0.0.0:1", "[::]:1", true}, {"[::]:1", "0.0.0.0:1", true}, {"[::]:1", "[::1]:1", true},
		// The one that names the address gets the connection.
		{"127.0.0.1:1", "[::]:1", false}, {"127.0.0.1:1", "0.0.0.0:1", false}, {"[::1]:1", "[::]:1", false},
	} {
		if got := overlap(netip.MustParseAddrPort(tt.a), netip.MustParseAddrPort(tt.b)); got != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

func TestOption(t *testing.T) {
	for text, want := range map[string]string{
		"serve --port 8095": "8095", "--port=1 --port 2": "2", "--port": "", "--portal 3": "", "": "",
	} {
		if got, _ := option(strings.Fields(text), "--port"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A server that says it is another build than the package's is not the package's, whatever path it runs from.
func TestBuildOfServer(t *testing.T) {
	info := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/props" || info == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"total_slots": 1, "build_info": %q}`, info)
	}))
	defer server.Close()
	m := &packager.Manifest{Components: []packager.Component{{Name: "llama.cpp", Commit: "86c33b5d5f0e"}}}
	for _, tt := range []struct {
		info  string
		typed bool
		fails bool
		notes int
	}{
		{"b10605-86c33b5d5", false, false, 0}, {"b9001-00adc2b", false, true, 0}, {"b9001-00adc2b", true, false, 1}, {"", false, false, 0},
	} {
		info, m.Components[0].Declared = tt.info, tt.typed
		w := &watched{h: &Host{}, pkg: PackageRef{Path: "/p"}, place: &place{known: map[string]*store.Package{"/p": {Manifest: m}}}}
		err := w.build(t.Context(), &engine.Client{BaseURL: server.URL})
		var f *failure
		if errors.As(err, &f) != tt.fails || !tt.fails && err != nil || len(w.notes) != tt.notes {
			t.Errorf("%q, declared %v: %v, notes %q", tt.info, tt.typed, err, w.notes)
		}
	}
}
