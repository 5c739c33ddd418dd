package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The reference of the sentinels is a whole run that did not fail, and stays
// what it was.
func TestReference(t *testing.T) {
	const few = "load: {requests: 24, prompt_tokens: [24], n_predict: [20]}\n"
	p := fakePackage(t, "works")
	reference := func(fault string) string {
		dir := filepath.Join(t.TempDir(), "reference")
		soak(t, RunOptions{Plan: fakePlan(t, p, fault, "sentinels: {every: 4, prompt_tokens: [24]}\n"+few), Package: p, Evidence: dir})
		return dir
	}
	against := func(dir string, progress func(Progress)) (*Verdict, string, error) {
		evidence := filepath.Join(t.TempDir(), "evidence")
		more := fmt.Sprintf("primary: request\nattempts: 4\narms: [{name: a, lives: 2}]\nsentinels: {every: 4, prompt_tokens: [24], reference: %s}\n", dir)
		v, err := Run(t.Context(), RunOptions{Plan: fakePlan(t, p, "", more+few), Package: p, Evidence: evidence, Progress: progress})
		return v, evidence, err
	}
	refused := func(dir, want string) {
		t.Helper()
		if _, evidence, err := against(dir, nil); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		} else if _, err := os.Stat(evidence); !errors.Is(err, os.ErrNotExist) {
			t.Error("a refused run left evidence")
		}
	}
	refused(t.TempDir(), "there is no file")
	refused(reference("null@20"), "failed (fault(")

	good := reference("")
	v, evidence, err := against(good, nil)
	if err != nil || v.Verdict != Pass {
		t.Fatalf("%+v, %v", v, err)
	}
	resolved, err := os.ReadFile(filepath.Join(evidence, ResolvedName))
	if err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(good, LedgerName)
	whole, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(resolved, []byte(`"digest": "sha256:`+sumOf(whole)+`"`)) {
		t.Errorf("the ledger of the reference is not in %s:\n%s", ResolvedName, resolved)
	}

	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	cut := func(t testing.TB) {
		if err := os.WriteFile(ledger, append(whole[:last:last], "{\"garbage\n"...), 0o644); err != nil {
			t.Error(err)
		}
	}
	done := false
	v, _, err = against(good, func(s Progress) {
		if s.Requests > 10 && !done {
			done = true
			cut(t)
		}
	})
	if err != nil || v.Verdict != Inconclusive || !strings.Contains(v.Reason, "invalid(changed): sentinels.reference: "+ledger) {
		t.Errorf("changed meanwhile: %+v, %v", v, err)
	}
	refused(good, "is not whole: ")
}
