package claim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
)

// linePrefix begins our line in a lock file. What else stands there is somebody else's.
const linePrefix = "1bit-claim "

// mostText bounds how much of a lock file is read, in bytes, at either end.
const mostText = 64 << 10

// line is our line in a lock file. What it says holds while the process that wrote it lives: a number alone would
// be another process's one day.
type line struct {
	Record
	Start uint64 `json:"start_ticks"` // of the process, since boot
	Boot  string `json:"boot"`
}

// line is what a process says of its claim.
func (l Lock) line(r Record) line {
	ticks, _ := engine.StartTicks(l.proc(), r.PID)
	return line{Record: r, Start: ticks, Boot: l.bootID()}
}

// stands tells whether who wrote the line is still there.
func (l Lock) stands(s line) bool {
	ticks, alive := engine.StartTicks(l.proc(), s.PID)
	return alive && ticks == s.Start && s.Boot != "" && s.Boot == l.bootID()
}

// hold is a lock that we have.
type hold struct {
	lock     Lock
	file     *os.File
	writable bool
	wrote    written
}

// written is where our line stands in a lock file.
type written struct {
	At   int64  `json:"at"`
	Text string `json:"text"`
}

// write puts our line at the end of the file. Lines of ours that a crash left there go; the text of others stays.
func (h *hold) write(r Record) error {
	if !h.writable {
		return nil
	}
	info, err := h.file.Stat()
	if err != nil {
		return fmt.Errorf("write into %s: %w", h.lock.Path, err)
	}
	from := max(0, info.Size()-mostText)
	tail := make([]byte, info.Size()-from)
	if n, err := h.file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", h.lock.Path, err)
	} else {
		tail = tail[:n]
	}
	tail = tail[:foreign(tail)]
	text, err := json.Marshal(h.lock.line(r))
	if err != nil {
		return fmt.Errorf("write into %s: %w", h.lock.Path, err)
	}
	w := written{from + int64(len(tail)), linePrefix + string(text) + "\n"}
	if len(tail) > 0 && tail[len(tail)-1] != '\n' {
		w.Text = "\n" + w.Text
	}
	_, err = h.file.WriteAt([]byte(w.Text), w.At)
	if err == nil {
		err = h.file.Truncate(w.At + int64(len(w.Text)))
	}
	if err != nil {
		_ = h.file.Truncate(w.At)
		return fmt.Errorf("write into %s: %w", h.lock.Path, err)
	}
	h.wrote = w
	return nil
}

// foreign is how much of the end of a lock file is not ours.
func foreign(tail []byte) int {
	n := len(tail)
	for n > 0 {
		end := n
		if tail[end-1] == '\n' {
			end--
		}
		begin := bytes.LastIndexByte(tail[:end], '\n') + 1
		if !bytes.HasPrefix(tail[begin:end], []byte(linePrefix)) {
			break
		}
		n = begin
	}
	return n
}

// clear takes our line out again, if nobody has written over it. What was written behind it stays.
func (h *hold) clear() {
	if h.wrote.Text == "" {
		return
	}
	there := make([]byte, len(h.wrote.Text)+mostText)
	n, _ := h.file.ReadAt(there, h.wrote.At)
	rest, is := bytes.CutPrefix(there[:n], []byte(h.wrote.Text))
	if !is || n == len(there) { // that is too much to move
		return
	}
	if _, err := h.file.WriteAt(rest, h.wrote.At); err == nil {
		_ = h.file.Truncate(h.wrote.At + int64(len(rest)))
	}
}

// release lets the lock go, for whoever else has it open too.
func (h *hold) release() {
	h.clear()
	_ = h.lock.lock(h.file, unix.LOCK_UN)
	h.file.Close()
}

// text reads what a lock file says: the last line of ours, and the text of others, at most 4 KiB of it.
func (l Lock) text() (ours *line, others string, err error) {
	f, _, err := l.open(false)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", l.Path, err)
	}
	tail := head
	if info, err := f.Stat(); err == nil && info.Size() > mostText {
		tail = make([]byte, mostText)
		n, _ := f.ReadAt(tail, info.Size()-mostText)
		tail = tail[:n]
	}
	ours, _ = parseText(tail)
	_, others = parseText(head)
	return ours, others, nil
}

// parseText divides the text of a lock file.
func parseText(b []byte) (ours *line, others string) {
	var rest []string
	for row := range strings.Lines(string(b)) {
		text, is := strings.CutPrefix(strings.TrimRight(row, "\r\n"), linePrefix)
		if !is {
			rest = append(rest, row)
			continue
		}
		var s line
		if err := json.Unmarshal([]byte(text), &s); err == nil && s.PID > 0 {
			ours = &s
		}
	}
	const most = 4 << 10
	others = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(strings.Join(rest, ""), "\x00", ""), "?"))
	return ours, strings.ToValidUTF8(others[:min(len(others), most)], "")
}
