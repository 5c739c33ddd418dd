package incident

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// Entries are in the order in which they were written: whatever the host's clock said, and of one moment by number, not
// by the length or the digits of what else is in a cursor.
func TestInOrder(t *testing.T) {
	at := time.Date(2026, 10, 23, 10, 0, 0, 0, time.UTC)
	kept := map[string]systemd.Entry{}
	add := func(boot string, at time.Time, mono time.Duration, i int, hash string) {
		cursor := fmt.Sprintf("s=aa;i=%x;b=%s;m=1;t=1;x=%s", i, boot, hash)
		kept[cursor] = systemd.Entry{At: at, Boot: boot, Monotonic: mono, Cursor: cursor, Message: fmt.Sprint(i)}
	}
	add("two", at.Add(2*time.Hour), time.Second, 18, "f00")
	add("one", at, time.Minute, 14, "abc")
	add("one", at, time.Minute, 15, "ab")
	add("one", at, time.Minute, 16, "abcd")
	add("one", at.Add(-time.Hour), 2*time.Minute, 17, "a") // the clock was set back
	var got []string
	for _, e := range inOrder(kept) {
		got = append(got, e.Message)
	}
	if s := strings.Join(got, " "); s != "14 15 16 17 18" {
		t.Error(s)
	}
	// Without the clock of the boot that of the host decides.
	for cursor, e := range kept {
		e.Monotonic = 0
		kept[cursor] = e
	}
	if first := inOrder(kept)[0].Message; first != "17" {
		t.Error(first)
	}
}

// A service whose clock was set back while it ran is gathered from its start, and told in its order.
func TestGatherOverAClockThatWasSetBack(t *testing.T) {
	s := &stageHost{}
	s.journal = entriesOf(t, "== a"+serverStart+`
		09:00:06.0 1bit[20] 0.31.000.000 E common_sampler_sample: HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing=no
		09:00:06.0 1bit[20] /src/common/sampling.cpp:432: NaN logits
		09:00:06.2 systemd llm.service: Main process exited, code=killed, status=6/ABRT
		09:00:06.2 systemd llm.service: Failed with result 'signal'.`, false)
	for i := range s.journal {
		e := &s.journal[i]
		e.Monotonic = time.Duration(i+1)*time.Millisecond + time.Hour
		if e.At.Hour() == 9 {
			e.Monotonic += 31 * time.Second
		}
	}
	slices.Reverse(s.journal) // nothing rests on the order in which it is read
	r := Analyse(s.gather(t, nil))
	if r.Signature != "nan-abort whole-vocabulary never-used-slot common_sampler_sample" || r.Ending.UptimeS == nil || *r.Ending.UptimeS < 30 || *r.Ending.UptimeS > 32 || len(r.Others) > 0 {
		t.Errorf("%s: %+v, %+v", r.Signature, r.Ending, r.Others)
	}
}

// A log that does not go to the journal is not complete there.
func TestGatherSaysWhereTheLogIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), stageUnit)
	putFile(t, path, "[Service]\nExecStart=/bin/true\nStandardOutput=append:/var/log/srv.log\nStandardError=journal\nLogNamespace=foo\n")
	u := &systemd.Unit{ID: stageUnit, FragmentPath: path}
	settings, err := systemd.ReadSettings(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}, Loaded: u, Settings: settings}}
	s.life("a", stageNow.Add(-time.Hour), stageNow.Add(-time.Minute))
	r := Analyse(s.gather(t, nil))
	gaps := strings.Join(r.Gaps, "\n")
	if r.Complete || strings.Count(gaps, "=") != 3 || !strings.Contains(gaps, "StandardOutput=append:/var/log/srv.log: ") || !strings.Contains(gaps, "--namespace=foo") {
		t.Errorf("%v %s", r.Complete, gaps)
	}
}
