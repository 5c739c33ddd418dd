package acceptance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fixedClock makes ledgers of tests the same bytes every time.
func fixedClock() func() time.Time {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}

type entry struct {
	kind string
	data any
}

// ledgerBytes writes a ledger and reads the file back.
func ledgerBytes(t testing.TB, closed bool, entries ...entry) []byte {
	t.Helper()
	dir := t.TempDir()
	l, err := createLedger(dir, fixedClock())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := l.append(e.kind, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if closed {
		err = l.close()
	} else {
		err = errors.Join(l.sync(), l.f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, LedgerName))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// content is a ledger with all its records.
type content struct {
	*ledgerSummary
	Lines []line
}

func mustRead(t testing.TB, raw []byte) *content {
	t.Helper()
	c := &content{}
	var err error
	c.ledgerSummary, err = scanLedger(bytes.NewReader(raw), func(r *record) error {
		c.Lines = append(c.Lines, r.line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func threeRequests() []entry {
	return []entry{
		{recordRequest, requestRecord{ID: 0, Outcome: outcomeAnswered}},
		{recordRequest, requestRecord{ID: 1, Outcome: outcomeAnswered, Error: `a "sum":"in text`}},
		{recordRequest, requestRecord{ID: 2, Outcome: outcomeCensored}},
	}
}

func TestLedgerIsReadAsWritten(t *testing.T) {
	c := mustRead(t, ledgerBytes(t, true, threeRequests()...))
	if c.Damage != "" || !c.Closed || len(c.Lines) != 3 || len(c.Notes) != 0 {
		t.Fatalf("%+v", c)
	}
	r, err := decode[requestRecord](c.Lines[1])
	if err != nil || r.ID != 1 || !strings.Contains(r.Error, "sum") {
		t.Errorf("%+v, %v", r, err)
	}
}

// Every single byte counts: any one changed is damage.
func TestLedgerShowsEveryChangedByte(t *testing.T) {
	raw := ledgerBytes(t, true, threeRequests()...)
	for i := range raw {
		for _, flip := range []byte{0x01, 0x20} {
			changed := bytes.Clone(raw)
			changed[i] ^= flip
			if c := mustRead(t, changed); c.Damage == "" && c.Closed {
				t.Fatalf("byte %d changed from %q to %q unseen", i, raw[i], changed[i])
			}
		}
	}
}

func TestLedgerShowsMissingAndMovedLines(t *testing.T) {
	lines := bytes.SplitAfter(ledgerBytes(t, true, threeRequests()...), []byte{'\n'})
	lines = lines[:len(lines)-1]
	join := func(of ...int) []byte {
		var b []byte
		for _, i := range of {
			b = append(b, lines[i]...)
		}
		return b
	}
	for name, raw := range map[string][]byte{
		"one taken out":       join(0, 2, 3),
		"the first taken out": join(1, 2, 3),
		"two exchanged":       join(0, 2, 1, 3),
		"one twice":           join(0, 1, 1, 2, 3),
		"one after the close": join(0, 1, 2, 3, 2),
		"closed twice":        join(0, 1, 2, 3, 3),
	} {
		if c := mustRead(t, raw); c.Damage == "" {
			t.Errorf("%s: not seen", name)
		}
	}
	if c := mustRead(t, join(0, 1, 2)); c.Closed || c.Damage != "" || len(c.Lines) != 3 {
		t.Errorf("without closing record: %+v", c)
	}
}

// A crash cuts the file anywhere: whole lines stay, the torn one is dropped.
func TestLedgerCutAnywhere(t *testing.T) {
	raw := ledgerBytes(t, true, threeRequests()...)
	for n := range raw {
		c := mustRead(t, raw[:n])
		whole := bytes.Count(raw[:n], []byte{'\n'})
		if c.Damage != "" || c.Closed || len(c.Lines) != whole {
			t.Fatalf("cut at %d: %d lines of %d, damage %q, closed %v", n, len(c.Lines), whole, c.Damage, c.Closed)
		}
		if torn := n > 0 && raw[n-1] != '\n'; torn != (len(c.Notes) == 1) {
			t.Fatalf("cut at %d: notes %q", n, c.Notes)
		}
	}
}

func TestLedgerBelongsToOneRun(t *testing.T) {
	dir := t.TempDir()
	l, err := createLedger(dir, fixedClock())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if _, err := createLedger(dir, fixedClock()); !errors.Is(err, ErrEvidence) {
		t.Errorf("a second ledger: %v", err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if err := l.append(recordRequest, requestRecord{}); err == nil {
		t.Error("a closed ledger takes records")
	}
}

func FuzzReadLedger(f *testing.F) {
	raw := ledgerBytes(f, true, threeRequests()...)
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"seq":1},"sum":""}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := mustRead(t, b)
		if c.Closed && c.Damage != "" {
			t.Fatal("closed and damaged")
		}
		if c.Closed && !bytes.HasSuffix(b, []byte("\n")) {
			t.Fatal("closed with a torn line")
		}
		if len(c.Lines) > bytes.Count(b, []byte{'\n'}) {
			t.Fatal("more records than lines")
		}
	})
}
