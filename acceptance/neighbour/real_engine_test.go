package neighbour

import (
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/internal/realengine"
)

// Each kind on the real engine: it proves its work, and its own trouble is its own.
func TestKindsOnRealEngine(t *testing.T) {
	e := realengine.Require(t)
	programs := map[string]string{}
	for _, name := range []string{"llama-bench", "llama-server", "test-backend-ops"} {
		programs[name] = e.Program(name)
	}
	path := []string{"PATH=/usr/bin:/bin"}
	tests := map[string]struct {
		spec    Spec
		model   string
		least   int64  // units
		finding string // a part of one; "": none may be there
		died    bool
	}{
		"bench":                 {Spec{Kind: Bench, Args: []string{"-t", "1", "-p", "16", "-n", "8", "-r", "20"}}, realengine.Plain, 20 * 24, "", false},
		"bench is content":      {Spec{Kind: Bench, Args: []string{"-t", "1", "-p", "16", "-n", "8", "-r", "20"}}, realengine.NaN, 20 * 24, "", false},
		"bench without model":   {Spec{Kind: Bench}, "missing", 0, "llama-bench ended: exit status 1", true},
		"server":                {Spec{Kind: Server, Args: []string{"-t", "1"}}, realengine.Plain, 4, "", false},
		"server that gives NaN": {Spec{Kind: Server, Args: []string{"-t", "1"}}, realengine.NaN, 4, "nan: null log-probability", false},
		"server without model":  {Spec{Kind: Server}, "missing", 0, "llama-server was never ready", true},
		"ops":                   {Spec{Kind: Ops, Args: []string{"-b", "CPU", "-o", "SIN"}}, "", 6, "", false},
		"ops that skip":         {Spec{Kind: Ops, Args: []string{"-o", "SIN"}}, "", 0, "it skips the CPU unless", true},
		"memory":                {Spec{Kind: Memory, GiB: 0.0625}, "", 64, "", false},
		"command":               {Spec{Kind: Command, Args: []string{"sh", "-c", "exit 0"}}, "", 2, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := ""
			if tt.model != "" {
				model = e.Model(tt.model)
			}
			tr, err := newTrial(t, Options{Spec: tt.spec, Programs: programs, Model: model, Env: path})
			if err != nil {
				t.Fatal(err)
			}
			s := tr.until(t, func() bool { return !tt.died && tr.hasWorked() && tr.Summary(0, tr.us()).Units >= tt.least })
			t.Logf("%+v", s)
			if s.Units < tt.least || tr.hasWorked() != (tt.least > 0) || (s.Died != "") != tt.died || s.AliveUS <= 0 {
				t.Errorf("%+v, worked: %v", s, tr.hasWorked())
			}
			found := strings.Join(s.Findings, "\n")
			if tt.finding == "" && found != "" || !strings.Contains(found, tt.finding) {
				t.Errorf("findings %q, want %q", found, tt.finding)
			}
			if tt.least > 0 && s.Runs < 1 || tt.died && s.Failed != maxFailures {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A second server that crashes is a finding of its own and is started again; one that ends with its requests in flight
// says nothing more.
func TestServerThatCrashes(t *testing.T) {
	e := realengine.Require(t)
	tr, err := newTrial(t, Options{
		Spec: Spec{Kind: Server, Args: []string{"-t", "1"}, Workers: 1}, Programs: map[string]string{"llama-server": e.Program("llama-server")},
		Model: e.Model(realengine.Plain), Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	killed := false
	s := tr.until(t, func() bool {
		switch {
		case !killed && tr.hasWorked():
			killed = true
			syscall.Kill(-tr.started()[0], syscall.SIGSEGV)
		case killed:
			return tr.Summary(0, tr.us()).Runs > 1
		}
		return false
	})
	if s.Failed != 1 || s.Runs != 2 || s.Died != "" || !strings.Contains(strings.Join(s.Findings, "\n"), "llama-server ended by itself: signal 11") {
		t.Errorf("%+v", s)
	}
	if last := tr.runs[len(tr.runs)-1]; last.Exit != ExitStopped || len(last.Findings) > 0 {
		t.Errorf("%+v", last)
	}
}
