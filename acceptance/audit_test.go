package acceptance

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// The raw answers of a run are all there, and say what the ledger says.
func TestAudit(t *testing.T) {
	p := fakePackage(t, "works")
	dir := filepath.Join(t.TempDir(), "evidence")
	v := soak(t, RunOptions{Plan: fakePlan(t, p, "null@30", "faces: {nan-wire: off}\n"), Package: p, Evidence: dir})
	if v.Verdict == Fail {
		t.Fatalf("%s: %s", v.Verdict, v.Reason)
	}
	audit := func() *Audit {
		t.Helper()
		a, err := AuditDir(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := audit()
	if a.Requests != 48 || a.Answers != 48 || len(a.Missing)+len(a.Different) != 0 {
		t.Errorf("%+v", a)
	}
	if len(a.Overseen) != 1 || !strings.HasPrefix(a.Overseen[0].What, detect.NaNWire+": ") {
		t.Fatalf("a face that the plan had off is not found again: %+v", a.Overseen)
	}
	raw, err := RawAnswer(dir, 1, a.Overseen[0].Request)
	if err != nil || !bytes.Contains(raw, []byte(`"logprob":null`)) {
		t.Errorf("its raw answer: %v %.200q", err, raw)
	}
	if _, err := RawAnswer(dir, 1, 4711); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an answer that is not there: %v", err)
	}

	// Files that are not as they were.
	if len(a.Files) > 0 {
		t.Errorf("files: %+v", a.Files)
	}
	for name, change := range map[string]func(b []byte) []byte{
		ServerLogName: func(b []byte) []byte { return append([]byte("x"), b[1:]...) },
		SamplesName:   func(b []byte) []byte { return bytes.Replace(b, []byte("_gib"), []byte("_GIB"), 1) },
		AnswersName:   func(b []byte) []byte { return append(b[:len(b):len(b)], "garbage"...) },
	} {
		path := filepath.Join(ArmDir(dir, 1), name)
		before, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(before), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a := audit(); len(a.Files) != 1 || a.Files[0].Name != name || a.Files[0].Arm != 1 || a.OK() || a.Answers != 48 {
			t.Errorf("%s was changed: %+v", name, a)
		}
		if err := os.WriteFile(path, before, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	// Answers of another run, and none.
	stored := filepath.Join(ArmDir(dir, 1), AnswersName)
	other := filepath.Join(t.TempDir(), "other")
	soak(t, RunOptions{Plan: fakePlan(t, p, "", "load: {requests: 20, seed: 9, prompt_tokens: [24], n_predict: [20], request_deadline: 20s}\n"), Package: p, Evidence: other})
	foreign, err := os.ReadFile(filepath.Join(ArmDir(other, 1), AnswersName))
	if err == nil {
		err = os.WriteFile(stored, foreign, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := audit(); len(a.Different) != 20 || len(a.Missing) != 28 || a.OK() {
		t.Errorf("foreign answers: %d different, %d missing", len(a.Different), len(a.Missing))
	}
	if err := os.Remove(stored); err != nil {
		t.Fatal(err)
	}
	if a := audit(); len(a.Missing) != 48 || a.OK() {
		t.Errorf("no answers: %d missing", len(a.Missing))
	}
}
