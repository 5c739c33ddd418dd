package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A front end's server counts, and neither the front end, nor what helps it, nor what the server starts.
func TestServersOfFrontEnd(t *testing.T) {
	proc := func(pid, parent int, exe string) procInfo {
		return procInfo{pid: pid, parent: parent, exe: exe, argv: []string{exe}, since: time.Time{}.Add(time.Duration(pid) * time.Second)}
	}
	script := func(pid, parent int) procInfo {
		p := proc(pid, parent, "/bin/bash")
		p.argv = []string{"/bin/bash", "-c", `while :; do "$@"; done`, "front", "/p/llama-server"}
		return p
	}
	for _, test := range []struct {
		name    string
		procs   []procInfo
		servers []Started
	}{
		{"front end", []procInfo{proc(1, 0, "/p/1bit"), proc(2, 1, "/p/llama-server"), proc(3, 1, "/bin/sleep")}, []Started{{2, 2 * time.Second}}},
		{"a shell between", []procInfo{proc(1, 0, "/p/1bit"), proc(2, 1, "/bin/sh"), proc(3, 2, "/p/llama-server")}, []Started{{3, 3 * time.Second}}},
		{"router", []procInfo{proc(1, 0, "/p/1bit"), proc(2, 1, "/p/llama-server"), proc(3, 2, "/p/llama-server")}, []Started{{2, 2 * time.Second}}},
		{"no front end", []procInfo{proc(1, 0, "/p/llama-server"), proc(2, 1, "/p/llama-server")}, nil},
		{"a script that names the server", []procInfo{script(1, 0), script(2, 1), proc(3, 1, "/p/llama-server")}, []Started{{3, 3 * time.Second}}},
	} {
		main, servers := (&place{}).servers(test.procs, 1)
		if d := cmp.Diff(test.servers, servers); d != "" || main != (Started{1, time.Second}) {
			t.Errorf("%s: main is %v: %s", test.name, main, d)
		}
	}
}
