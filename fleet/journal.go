package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// journalName is the file below StateDir that holds what was done to the services of this host.
const journalName = "journal.jsonl"

// The acts of the journal. actOutside stands for a change that this program did not make: it is recorded when
// the next act finds the unit elsewhere than the last record left it, so that the chain has no gap.
const (
	actSwitch   = "switch"
	actRollback = "rollback"
	actRestart  = "restart"
	actReturn   = "return"
	actUndo     = "undo"
	actUnswitch = "unswitch"
	actAdopt    = "adopt"
	actUnadopt  = "unadopt"
	actOutside  = "outside"
)

const (
	phaseIntent = "intent"
	phaseCommit = "commit"
	phaseAbort  = "abort"
)

// entry is one line of the journal: an intent, and later the commit or abort with the same unit and seq.
type entry struct {
	Seq    int       `json:"seq"`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Scope  string    `json:"scope"`
	Unit   string    `json:"unit"`
	Act    string    `json:"act"`
	Phase  string    `json:"phase"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Digest string    `json:"digest,omitempty"` // of the package To
	Old    string    `json:"old_sha256,omitempty"`
	New    string    `json:"new_sha256,omitempty"`
	Result string    `json:"result,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Record is one finished act on a service, folded from its journal lines. From of each record is To of the one
// before it.
type Record struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Act    string    `json:"act"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Result string    `json:"result"`
	Reason string    `json:"reason,omitempty"`
}

// journal is the append-only file of one host. Losing it loses history and the memory of which package served;
// it never stops a rollback.
type journal struct{ dir string }

func (j journal) path() string { return filepath.Join(j.dir, journalName) }

// entries reads the lines of one unit in order. A line that does not parse (torn by a crash) is dropped.
func (j journal) entries(scope, unit string) ([]entry, error) {
	data, err := j.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	var out []entry
	for _, e := range parseJournal(linesNaming(data, unit)) {
		if e.Scope == scope && e.Unit == unit {
			out = append(out, e)
		}
	}
	return out, nil
}

// linesNaming keeps the whole lines that name a unit. All services share the file: decoding the others' lines takes
// longer than everything else that a status does.
func linesNaming(data []byte, unit string) []byte {
	name, err := json.Marshal(unit)
	if err != nil {
		return data
	}
	var out []byte
	for {
		at := bytes.Index(data, name)
		if at < 0 {
			return out
		}
		start := bytes.LastIndexByte(data[:at], '\n') + 1
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			return out // torn
		}
		out = append(out, data[start:at+end+1]...)
		data = data[at+end+1:]
	}
}

// maxJournal bounds what is read of a journal, in bytes: its end. maxSeq bounds the numbers that count.
const (
	maxJournal = 64 << 20
	maxSeq     = 1 << 48
)

// read returns the bytes of the journal. Only a regular file is one: a pipe would never end.
func (j journal) read() ([]byte, error) {
	f, err := os.OpenFile(j.path(), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: j.path(), Err: atomicfile.ErrNotRegular}
	}
	if past := info.Size() - maxJournal; past > 0 {
		if _, err := f.Seek(past, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, maxJournal))
}

// parseJournal reads every whole line; a last line without a newline is torn and does not count.
func parseJournal(data []byte) []entry {
	var out []entry
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return out
		}
		data = rest
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Unit == "" || e.Seq <= 0 || e.Seq > maxSeq {
			continue
		}
		out = append(out, e)
	}
}

// append adds one line. A lock that is nobody else's is held meanwhile, since services share the file.
func (j journal) append(ctx context.Context, e entry) error {
	if err := atomicfile.MkdirAll(j.dir, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	path, err := stateLock(j.dir, journalName)
	if err != nil {
		return fmt.Errorf("lock the journal: %w", err)
	}
	lock, err := lockDir(ctx, path)
	if err != nil {
		return fmt.Errorf("lock the journal: %w", err)
	}
	defer lock.release()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode a journal line: %w", err)
	}
	if err := atomicfile.Append(j.path(), line, 0o600); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// lastSeq is the highest sequence number among entries, 0 for none.
func lastSeq(entries []entry) int {
	last := 0
	for _, e := range entries {
		last = max(last, e.Seq)
	}
	return last
}

// unfinished returns the last intent that has neither commit nor abort. One that its process still works on, as
// held tells, does not count; nil stands for none.
func unfinished(entries []entry, held func(entry) bool) (entry, bool) {
	done := map[int]bool{}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if e.Phase != phaseIntent {
			done[e.Seq] = true
		} else if !done[e.Seq] && (held == nil || !held(e)) {
			return e, true
		}
	}
	return entry{}, false
}

// written is the last act that moved a unit, where that one could not be loaded.
func written(entries []entry) (entry, bool) {
	for _, e := range slices.Backward(entries) {
		if e.Phase == phaseCommit && e.Act != actRestart {
			return e, e.Result == resultWritten
		}
	}
	return entry{}, false
}

// open lists the units of a scope with an act that has neither commit nor abort, or that could not be loaded. A journal that cannot be read opens
// none: every act on a unit reads it again.
func (j journal) open(scope string) map[string]bool {
	data, err := j.read()
	if err != nil {
		return nil
	}
	byUnit := map[string][]entry{}
	for _, e := range parseJournal(data) {
		if e.Scope == scope {
			byUnit[e.Unit] = append(byUnit[e.Unit], e)
		}
	}
	open := map[string]bool{}
	for unit, entries := range byUnit {
		_, cut := unfinished(entries, j.held)
		if _, unloaded := written(entries); cut || unloaded {
			open[unit] = true
		}
	}
	return open
}

// fold makes the history of one unit from its lines: one record for each committed act, in order of commit.
func fold(entries []entry) []Record {
	var out []Record
	for _, e := range entries {
		if e.Phase != phaseCommit {
			continue
		}
		out = append(out, Record{At: e.At, By: e.By, Act: e.Act, From: e.From, To: e.To, Result: e.Result, Reason: e.Reason})
	}
	return out
}

// served tells whether the journal saw the package serving since it was last armed: a restart of it that passed
// its health check. What an undo armed is as it was before the rollback that it undoes.
func served(entries []entry, pkg PackageRef) bool {
	undone := false
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if e.Phase != phaseCommit {
			continue
		}
		left := e.From == pkg.Name && e.To != pkg.Name
		if undone {
			undone = !left || e.Act != actRollback && e.Act != actReturn
			continue
		}
		if e.To != pkg.Name || (e.Digest != "" && pkg.Digest != "" && e.Digest != pkg.Digest) {
			return false
		}
		if e.Result == resultServes {
			return true
		}
		if undone = e.Act == actUndo; !undone && e.From != e.To {
			return e.Act == actRollback || e.Act == actReturn
		}
	}
	return false
}

// The results a committed act can have.
const (
	resultArmed    = "armed"      // loaded; the next start uses it
	resultWritten  = "not loaded" // written without a bus
	resultServes   = "serves"     // restarted and answered its health check
	resultFailed   = "failed"     // restarted and failed; nothing to return to
	resultFinished = "finished"   // a crash came between; the next command finished it
	resultSeen     = "seen"       // for actOutside
)

// History returns the finished acts on a unit, oldest first.
func (h *Host) History(ctx context.Context, unit string) ([]Record, error) {
	unit, err := h.serviceName(ctx, unit)
	if err != nil {
		return nil, err
	}
	entries, err := h.journal().entries(string(h.Scope), unit)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("read the history of %s: %w: ask as the account that acts on it (sudo for a unit of the system)", unit, err)
	}
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return fold(entries), nil
	}
	// Nothing under this name: it may be an alias, or no unit at all.
	m, err := h.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", unit, err)
	}
	defer m.Close()
	u, err := m.Unit(ctx, unit)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", unit, h.noUnit(err, unit))
	}
	if entries, err = h.journal().entries(string(h.Scope), u.ID); err != nil {
		return nil, err
	}
	return fold(entries), nil
}
