package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func line(seq int, phase, act, from, to, result string) entry {
	return entry{Seq: seq, Phase: phase, Act: act, From: from, To: to, Result: result, Unit: "u.service", Scope: "user"}
}

func TestJournalFold(t *testing.T) {
	entries := []entry{
		line(1, phaseIntent, actSwitch, "a", "b", ""), line(1, phaseCommit, actSwitch, "a", "b", resultArmed),
		line(2, phaseIntent, actSwitch, "b", "c", ""), line(2, phaseAbort, actSwitch, "b", "c", ""),
		line(3, phaseIntent, actRestart, "b", "b", ""), line(3, phaseCommit, actRestart, "b", "b", resultServes),
		line(4, phaseIntent, actSwitch, "b", "c", ""),
	}
	want := []Record{
		{Act: actSwitch, From: "a", To: "b", Result: resultArmed},
		{Act: actRestart, From: "b", To: "b", Result: resultServes},
	}
	if diff := cmp.Diff(want, fold(entries)); diff != "" {
		t.Error(diff)
	}
	if e, ok := unfinished(entries, nil); !ok || e.Seq != 4 {
		t.Errorf("unfinished: %v %v", e, ok)
	}
	if e, ok := unfinished(entries[:6], nil); ok {
		t.Errorf("all are finished, got %v", e)
	}
	if got := lastSeq(entries); got != 4 {
		t.Errorf("last is %d", got)
	}
}

func TestJournalServed(t *testing.T) {
	armed := line(1, phaseCommit, actSwitch, "a", "b", resultArmed)
	ok, failed := line(2, phaseCommit, actRestart, "b", "b", resultServes), line(2, phaseCommit, actRestart, "b", "b", resultFailed)
	for _, tt := range []struct {
		name    string
		entries []entry
		want    bool
	}{
		{"nothing known", nil, false},
		{"only armed", []entry{armed}, false},
		{"served", []entry{armed, ok}, true},
		{"served and then failed", []entry{armed, ok, line(3, phaseCommit, actRestart, "b", "b", resultFailed)}, true},
		{"failed", []entry{armed, failed}, false},
		{"intent only", []entry{armed, line(2, phaseIntent, actRestart, "b", "b", "")}, false},
		{"served long ago, armed anew", []entry{armed, ok, line(3, phaseCommit, actSwitch, "b", "c", resultArmed), line(4, phaseCommit, actSwitch, "c", "b", resultArmed)}, false},
		{"rolled back to", []entry{line(3, phaseCommit, actRollback, "c", "b", resultArmed)}, true},
		{"rolled back from and undone, served before",
			[]entry{armed, ok, line(3, phaseCommit, actRollback, "b", "a", resultArmed), line(4, phaseCommit, actRestart, "a", "a", resultServes), line(5, phaseCommit, actUndo, "a", "b", resultArmed)}, true},
		{"rolled back from and undone, never served",
			[]entry{armed, failed, line(3, phaseCommit, actReturn, "b", "a", resultArmed), line(5, phaseCommit, actUndo, "a", "b", resultArmed)}, false},
		{"another is armed", []entry{armed, ok, line(3, phaseCommit, actSwitch, "b", "c", resultArmed)}, false},
	} {
		if got := served(tt.entries, PackageRef{Name: "b"}); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestJournalAppendsAndSkipsTornLines(t *testing.T) {
	j := journal{filepath.Join(t.TempDir(), "state", "1bit")}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			e := line(i+1, phaseCommit, actSwitch, "", "", "")
			e.Unit = fmt.Sprintf("u%d.service", i%2)
			if err := j.append(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := os.OpenFile(j.path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":99,"unit":"u0.ser`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := j.append(t.Context(), entry{Seq: 50, Unit: "u0.service", Scope: "user", At: time.Unix(1, 0).UTC()}); err != nil {
		t.Fatal(err)
	}
	got, err := j.entries("user", "u0.service")
	if err != nil || len(got) != 11 || lastSeq(got) != 50 {
		t.Errorf("%d entries, last %d, %v", len(got), lastSeq(got), err)
	}
	if got, err := j.entries("system", "u0.service"); err != nil || len(got) != 0 {
		t.Errorf("the other scope has %v, %v", got, err)
	}
}

// Lines of other units are passed over unread, whatever else is in them.
func TestJournalOfOneUnit(t *testing.T) {
	j := journal{t.TempDir()}
	units := []string{`a\x2db.service`, "a.service", "aa.service", `a\x2db.service`, "a.service.service"}
	for i, unit := range units {
		e := entry{Seq: i + 1, Scope: "user", Unit: unit, Phase: phaseIntent, Reason: `of "a.service" <&>`}
		if err := j.append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for unit, want := range map[string][]int{"a.service": {2}, `a\x2db.service`: {1, 4}, "b.service": nil} {
		entries, err := j.entries("user", unit)
		var got []int
		for _, e := range entries {
			got = append(got, e.Seq)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", unit, err, diff)
		}
	}
	if got := linesNaming([]byte("\"u\" 1\nx\n2 \"u\"\n\"u\" torn"), "u"); string(got) != "\"u\" 1\n2 \"u\"\n" {
		t.Errorf("%q", got)
	}
}

func FuzzParseJournal(f *testing.F) {
	b, err := json.Marshal(line(1, phaseIntent, actSwitch, "a", "b", ""))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b)+"\n", "torn")
	f.Add("{}\n\n[]\nnull\n", "")
	f.Fuzz(func(t *testing.T, text, torn string) {
		whole := parseJournal([]byte(text))
		if strings.Contains(torn, "\n") || !strings.HasSuffix(text, "\n") {
			return
		}
		if got := parseJournal([]byte(text + torn)); !cmp.Equal(got, whole) {
			t.Fatalf("a torn line changed what is read: %v, %v", whole, got)
		}
	})
}
