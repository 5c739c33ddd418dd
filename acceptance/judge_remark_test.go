package acceptance

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// How a server ended when it was told to is told, and no fault of the load.
func TestEndOfServer(t *testing.T) {
	const front = "$FAKE \"$@\" &\nc=$!\ntrap '%s' TERM\nwait $c\nsleep 300"
	for name, tt := range map[string]struct {
		trap, note string
	}{
		"crash":   {"kill -9 $c; kill -SEGV $$", "arm 1: told to end, the server crashed: signal 11 (segmentation fault)"},
		"willing": {"kill $c; wait $c; exit", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, "works")
			behind(t, p, strings.Replace(front, "%s", tt.trap, 1))
			dir := filepath.Join(t.TempDir(), "evidence")
			v := soak(t, RunOptions{Plan: fakePlan(t, p, "", ""), Package: p, Evidence: dir})
			if v.Verdict != Pass || len(v.Faults) > 0 {
				t.Errorf("%s: %s, %v", v.Verdict, v.Reason, v.Faults)
			}
			told := slices.IndexFunc(v.Notes, func(n string) bool { return strings.Contains(n, "told to end") })
			if (tt.note != "") != (told >= 0) || told >= 0 && !strings.HasPrefix(v.Notes[told], tt.note) {
				t.Errorf("notes %q, want %q", v.Notes, tt.note)
			}
			if !slices.ContainsFunc(v.NotTested, func(n string) bool {
				return strings.HasPrefix(n, "the bytes of the package alone: /") && strings.Contains(n, "(sha256:")
			}) {
				t.Errorf("the program from outside of the package is not told: %q", v.NotTested)
			}
			eachRecord(t, dir, func(r *record) {
				if r.Kind != recordEnd {
					return
				}
				e, err := decode[endRecord](r.line)
				if err != nil || e.Stopped == nil || e.Stopped.Killed || e.Stopped.GraceMS != stopGrace.Milliseconds() || e.Stopped.Status == "" {
					t.Errorf("%+v, %v", e, err)
				}
			})
		})
	}
}

// What there is to tell of several lives is told once.
func TestRemarks(t *testing.T) {
	j := newJudging(&Plan{Load: Load{}}, "", "")
	for n := range 3 {
		a := &arm{start: startRecord{Arm: n + 1}, end: &endRecord{Why: whyDone, Stopped: &stopRecord{GraceMS: 10_000, Signal: 9, Killed: true}}}
		j.remark(a)
		a.end.Why = whyFault // one that is known to be wrong is given little time
		j.remark(a)
	}
	if got := strings.Join(j.remarked(), "\n"); got != "arm 1 and 2 others: told to end, the server had not within 10s, and was killed" {
		t.Errorf("%q", got)
	}
}
