package acceptance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A run does not go on with a ledger whose end was cut off, and with it a fault:
// whatever else lies in the folder tells of it.
func TestResumeRefusesCutLedger(t *testing.T) {
	p := fakePackage(t, "works")
	plan := fakePlan(t, p, "null@9", "attempts: 4\nafter_fault: go_on\narms: [{name: a, lives: 2}]\nload: {requests: 24, prompt_tokens: [24], n_predict: [20]}\n")
	k := newKillable(t, p, plan)
	if v := soak(t, RunOptions{Plan: plan, Package: p, Evidence: k.evidence}); v.Verdict != Fail || v.Arms.Fault != 2 {
		t.Fatalf("%s: %s, %+v", v.Verdict, v.Reason, v.Arms)
	}
	path := filepath.Join(k.evidence, LedgerName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	before := func(what string, nth int) (cut []byte) {
		for _, line := range lines {
			if bytes.Contains(line, []byte(what)) {
				if nth--; nth == 0 {
					return cut
				}
			}
			cut = append(cut, line...)
		}
		t.Fatalf("the ledger has not that many %s", what)
		return nil
	}
	gone := func(name string) {
		if err := os.RemoveAll(filepath.Join(k.evidence, name)); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		what string
		cut  []byte
		gone string // before
	}{
		{"a verdict of a whole run", before(`"kind":"start"`, 2), "none"},
		{"a life", before(`"kind":"start"`, 2), VerdictName},
		{"an answer with a fault", before(`"face":"nan-wire"`, 1), "arms/0002"},
	}
	for _, s := range steps {
		gone(s.gone)
		if err := os.WriteFile(path, s.cut, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := k.resume(t, nil); !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", s.what, err)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, s.cut) {
			t.Errorf("%s: the ledger was changed", s.what)
		}
	}
	gone("arms/0001/" + FaultsDir) // whoever removes all that tells of it gets a new run
	if v, err := k.resume(t, nil); err != nil || v.Arms.Fault != 2 {
		t.Errorf("%v, %+v", err, v)
	}
}
