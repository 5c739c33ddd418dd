package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
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

// Every single byte counts: any other value of any byte is damage, or leaves
// the ledger without an end.
func TestLedgerShowsEveryChangedByte(t *testing.T) {
	raw := chained(t, true, threeRequests()...)
	changed := bytes.Clone(raw)
	for i := range raw {
		for _, flip := range []byte{0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80} {
			changed[i] = raw[i] ^ flip
			if c := mustRead(t, changed); c.Damage == "" && c.Closed {
				t.Fatalf("byte %d changed from %q to %q unseen", i, raw[i], changed[i])
			}
		}
		changed[i] = raw[i]
	}
}

// A byte more or less is seen as well.
func TestLedgerShowsEveryByteTakenOutOrPutIn(t *testing.T) {
	raw := chained(t, true, threeRequests()...)
	for i := range raw {
		out := append(bytes.Clone(raw[:i]), raw[i+1:]...)
		in := append(append(bytes.Clone(raw[:i]), ' '), raw[i:]...)
		for _, changed := range [][]byte{out, in} {
			if c := mustRead(t, changed); c.Damage == "" && c.Closed {
				t.Fatalf("byte %d: unseen: %q", i, changed)
			}
		}
	}
	if c := mustRead(t, append(raw, ' ')); c.Damage == "" || c.Closed {
		t.Errorf("a byte after the end: %+v", c.ledgerSummary)
	}
}

// Somebody who rewrites a line and its own sum breaks the chain at the next.
func TestLedgerShowsARewrittenLine(t *testing.T) {
	raw := chained(t, true, threeRequests()...)
	lines := bytes.SplitAfter(raw, []byte{'\n'})
	l, err := parseBody(lines[1][:len(lines[1])-1-tailSize])
	if err != nil {
		t.Fatal(err)
	}
	l.Data = bytes.Replace(l.Data, []byte(`"id":1`), []byte(`"id":7`), 1)
	lines[1] = newChain().appendLine(nil, l, lineSum(lines[0][:len(lines[0])-1]))
	c := mustRead(t, bytes.Join(lines, nil))
	if c.Damage == "" || c.Closed || len(c.Lines) != 2 {
		t.Errorf("%+v", c.ledgerSummary)
	}
}

func TestLedgerShowsMissingAndMovedLines(t *testing.T) {
	lines := bytes.SplitAfter(chained(t, true, threeRequests()...), []byte{'\n'})
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

// Whoever computes the chain anew still has to get numbers and end right.
func TestLedgerWithAChainOfItsOwn(t *testing.T) {
	type own struct {
		seq  int
		kind string
		data any
	}
	request, head := own{1, recordRequest, requestRecord{}}, ""
	build := func(list func(head string) []own) []byte {
		var raw, previous []byte
		for i := range list("") {
			o := list(head)[i]
			data, err := json.Marshal(o.data)
			if err != nil {
				t.Fatal(err)
			}
			from := len(raw)
			raw = newChain().appendLine(raw, line{Seq: o.seq, At: time.Unix(0, 0), Kind: o.kind, Data: data}, previous)
			previous = bytes.Clone(lineSum(raw[from : len(raw)-1]))
			head = string(previous)
		}
		return raw
	}
	sound := build(func(head string) []own { return []own{request, {2, recordClose, closing{1, head}}} })
	if c := mustRead(t, sound); !c.Closed || c.Damage != "" {
		t.Fatalf("sound: %+v", c.ledgerSummary)
	}
	for name, list := range map[string]func(head string) []own{
		"a wrong number": func(head string) []own { return []own{request, {3, recordClose, closing{1, head}}} },
		"a wrong first number": func(head string) []own {
			return []own{{2, recordRequest, requestRecord{}}, {2, recordClose, closing{1, head}}}
		},
		"a wrong count": func(head string) []own { return []own{request, {2, recordClose, closing{2, head}}} },
		"a wrong head":  func(head string) []own { return []own{request, {2, recordClose, closing{1, "00"}}} },
		"a line after the end": func(head string) []own {
			return []own{request, {2, recordClose, closing{1, head}}, {2, recordRequest, requestRecord{}}}
		},
		"closed twice": func(head string) []own {
			return []own{request, {2, recordClose, closing{1, head}}, {2, recordClose, closing{1, head}}}
		},
	} {
		if c := mustRead(t, build(list)); c.Closed || c.Damage == "" {
			t.Errorf("%s: %+v", name, c.ledgerSummary)
		}
	}
}

// A crash cuts the file anywhere: whole lines stay, the torn one is dropped.
func TestLedgerCutAnywhere(t *testing.T) {
	raw := chained(t, true, threeRequests()...)
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

// A run that was cut off goes on in the same chain.
func TestLedgerIsReopened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, LedgerName)
	whole := chained(t, false, threeRequests()...)
	last := whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1]
	for torn, raw := range map[string][]byte{"": whole, string(whole[len(last):][:20]): append(bytes.Clone(last), whole[len(last):][:20]...), "\x00\x00": append(bytes.Clone(whole), 0, 0)} {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		had := 0
		l, s, err := reopenLedger(dir, fixedClock(), func(*record) error { had++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if s.Torn != len(torn) || had != bytes.Count(raw, []byte{'\n'}) || (torn != "") != (len(s.Notes) == 1) {
			t.Errorf("torn by %q: %d records, %+v", torn, had, s)
		}
		if err := l.append(recordResume, resumeRecord{Note: strings.Join(s.Notes, "")}); err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := mustRead(t, after)
		if c.Damage != "" || !c.Closed || len(c.Lines) != had+1 {
			t.Errorf("torn by %q: %+v", torn, c.ledgerSummary)
		}
		// The clock of the test begins anew; the ledger's does not run back.
		if at := c.Lines[had].At; at.Before(c.Lines[had-1].At) {
			t.Errorf("time runs back: %v after %v", at, c.Lines[had-1].At)
		}
	}
}

func TestLedgerThatCannotGoOn(t *testing.T) {
	whole := chained(t, true, threeRequests()...)
	broken := bytes.Clone(whole)
	broken[100] ^= 1
	for name, raw := range map[string][]byte{"closed": whole, "damaged": broken} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, LedgerName), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := reopenLedger(dir, fixedClock(), func(*record) error { return nil }); !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := os.ReadFile(filepath.Join(dir, LedgerName))
		if err != nil || !bytes.Equal(after, raw) {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	if _, _, err := reopenLedger(t.TempDir(), fixedClock(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no ledger: %v", err)
	}
}

// Blocks are only a way to read: wherever they end, the records are the same.
func TestLedgerOfManyBlocks(t *testing.T) {
	var entries []entry
	for i := range 5000 {
		entries = append(entries, entry{recordRequest, requestRecord{ID: i, Error: strings.Repeat("x", i%700)}})
	}
	raw := chained(t, true, entries...)
	if len(raw) < 3*firstBlock {
		t.Fatalf("%d bytes are no many blocks", len(raw))
	}
	next := 0
	s, err := scanLedger(iotest.HalfReader(bytes.NewReader(raw)), func(r *record) error {
		if r.request == nil || r.request.ID != next || r.Seq != next+1 {
			t.Fatalf("record %d: %+v", next, r)
		}
		next++
		return nil
	})
	if err != nil || !s.Closed || s.Damage != "" || next != 5000 || s.Size != int64(len(raw)) {
		t.Errorf("%d records, %+v, %v", next, s, err)
	}
	raw[len(raw)/2] ^= 1
	if c := mustRead(t, raw); c.Damage == "" || c.Closed || len(c.Lines) < 2000 || len(c.Lines) > 4000 {
		t.Errorf("damage in the middle: %d records, %+v", len(c.Lines), c.ledgerSummary)
	}
}

func TestLedgerScanGivesErrorsOn(t *testing.T) {
	raw := chained(t, true, threeRequests()...)
	bad := errors.New("bad disk")
	if _, err := scanLedger(io.MultiReader(bytes.NewReader(raw[:len(raw)/2]), iotest.ErrReader(bad)), func(*record) error { return nil }); !errors.Is(err, bad) {
		t.Errorf("reading: %v", err)
	}
	enough, n := errors.New("enough"), 0
	if _, err := scanLedger(bytes.NewReader(raw), func(*record) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("taking: %v after %d", err, n)
	}
}

// A line of nonsense without an end does not fill the memory.
func TestLedgerWithoutLines(t *testing.T) {
	endless := io.LimitReader(zeros{}, 4*maxLedgerLine)
	s, err := scanLedger(endless, func(*record) error { return nil })
	if err != nil || s.Damage == "" {
		t.Errorf("%+v, %v", s, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzReadLedger(f *testing.F) {
	raw := chained(f, true, threeRequests()...)
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"seq":1},"sum":""}` + "\n"))
	f.Add(bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n")))
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
		// What was read stands in the file as it would be written.
		var again, head []byte
		for _, l := range c.Lines {
			from := len(again)
			again = newChain().appendLine(again, l, head)
			head = bytes.Clone(lineSum(again[from : len(again)-1]))
		}
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("read otherwise than written:\n%q\n%q", b, again)
		}
	})
}
