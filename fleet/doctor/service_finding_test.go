package doctor

import (
	"fmt"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

func TestTypedRemedy(t *testing.T) {
	const remedy = "systemctl --user edit UNIT, then: 1bit pkg restart UNIT"
	for _, tt := range []struct {
		scope systemd.Scope
		user  string
		acts  bool
		want  string
	}{
		{systemd.ScopeUser, "", true, "systemctl --user edit llm.service, then: 1bit pkg restart llm.service"},
		{systemd.ScopeSystem, "", true, "systemctl edit llm.service, then: 1bit pkg restart llm.service"},
		{systemd.ScopeSystem, "", false, "sudo systemctl edit llm.service, then: sudo 1bit pkg restart llm.service"},
		{systemd.ScopeUser, "", false, "systemctl --user edit llm.service, then: 1bit pkg restart llm.service"},
		{systemd.ScopeUser, "ai", false, "sudo -iu ai env XDG_RUNTIME_DIR=/run/user/$(id -u ai) systemctl --user edit llm.service, then: sudo -iu ai 1bit pkg restart llm.service"},
	} {
		s := service{Inspection: fleet.Inspection{Service: fleet.Service{Unit: "llm.service", Scope: tt.scope, User: tt.user}}, acts: tt.acts}
		if got := s.typed(remedy); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt, got, tt.want)
		}
	}
}

// Nor is a package of another account's for root to remove.
func TestKeeper(t *testing.T) {
	host := func(scope systemd.Scope, owner, dir string) *fleet.Host {
		return &fleet.Host{Scope: scope, Owner: owner, Store: store.Open(dir, dir+"/state")}
	}
	l := &look{Options: Options{Hosts: []*fleet.Host{host(systemd.ScopeSystem, "", "/opt/1bit"), host(systemd.ScopeUser, "ai", "/home/ai/share")}}}
	for path, want := range map[string]string{
		"/opt/1bit/1bit-a-b":      "1bit pkg remove a-b",
		"/home/ai/share/1bit-a-b": "sudo -iu ai 1bit pkg remove a-b",
	} {
		if got := l.keeper(&store.Package{Path: path}).typed("1bit pkg remove a-b"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// What root is told of another account's service can be typed in by root.
func TestTypedReload(t *testing.T) {
	s := service{Inspection: fleet.Inspection{Service: fleet.Service{Unit: "llm.service", Scope: systemd.ScopeUser, User: "ai"}}}
	if got := s.typed("take it out, then: systemctl --user daemon-reload"); got != "take it out, then: sudo systemctl --user -M ai@ daemon-reload" {
		t.Error(got)
	}
}

func TestToldByStatus(t *testing.T) {
	s := service{where: "llm.service (ai)", acts: true}
	s.Unit = "llm.service"
	s.Findings = []fleet.Finding{
		{Check: "a", What: "it is down"},
		{Check: "a", Where: "/etc/x.conf:3", What: "/etc/x.conf:3: no = in this line", Remedy: "correct it"},
		{Check: "b", What: "another check's"},
		{What: "no check's"},
	}
	var got []string
	times := s.told("a", "1bit pkg restart UNIT", func(where, remedy, what string, args ...any) {
		got = append(got, where+" | "+remedy+" | "+fmt.Sprintf(what, args...))
	})
	want := []string{
		"llm.service (ai) | 1bit pkg restart llm.service | it is down",
		"/etc/x.conf:3 | correct it | llm.service (ai): no = in this line",
	}
	if times != 2 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d: %q, want %q", times, got, want)
	}
}

// A service that is stopped and that nothing starts, that is masked or that is gone is no matter of most checks.
func TestServiceState(t *testing.T) {
	with := func(load, active, kind string) service {
		return service{Inspection: fleet.Inspection{Loaded: &systemd.Unit{LoadState: load, ActiveState: active, Type: kind}, Settings: &systemd.Settings{}}}
	}
	for _, tt := range []struct {
		s                          service
		loaded, up, meant, lasting bool
	}{
		{service{}, false, false, false, false},
		{with("masked", "active", "exec"), false, false, false, false},
		{with("loaded", "inactive", "exec"), true, false, false, true},
		{with("loaded", "failed", "notify"), true, false, false, true},
		{with("loaded", "activating", "exec"), true, true, true, true},
		{with("loaded", "active", "oneshot"), true, true, true, false},
	} {
		if tt.s.loaded() != tt.loaded || tt.s.up() != tt.up || tt.s.meant() != tt.meant || tt.s.lasting() != tt.lasting {
			t.Errorf("%+v: loaded %v, up %v, meant %v, lasting %v", tt.s.Loaded, tt.s.loaded(), tt.s.up(), tt.s.meant(), tt.s.lasting())
		}
	}
}

// The line that decides without our drop-in is what a first rollback goes back to: nobody is told to take it out.
func TestShadowedButFallenBackOn(t *testing.T) {
	s := service{where: "llm.service", acts: true}
	s.Unit = "llm.service"
	l := &look{services: func() ([]service, error) { return []service{s}, nil }}
	s.Shadowed = []fleet.Place{{File: "/u", Line: 14, Setting: "ONEBIT_LLAMA_SERVER"}, {File: "/u", Line: 15, Setting: "LD_LIBRARY_PATH"}}
	var out []Finding
	if err := shadowed().find(t.Context(), l, found(&out)); err != nil || len(out) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	s.Shadowed = append(s.Shadowed, fleet.Place{File: "/v", Line: 2, Setting: "ONEBIT_LLAMA_SERVER"})
	if err := shadowed().find(t.Context(), l, found(&out)); err != nil || len(out) != 1 || out[0].Where != "/u:14" {
		t.Errorf("%+v, %v", out, err)
	}
}
