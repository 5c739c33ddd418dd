package claim

import (
	"bufio"
	"cmp"
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

// HistoryFile is the name of a history in a state folder.
const HistoryFile = "claims.jsonl"

// ReadHistory lists the claims of a history that held their lock at any time between from and to, in the order of
// their begin. One whose end was not written down is taken to have lasted until its time was over. A history that is
// not there is empty. A line that is torn or is none of ours is passed over.
func ReadHistory(path string, from, to time.Time) ([]Record, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of claims: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, fmt.Errorf("read the history of claims: %w", cmp.Or(err, fmt.Errorf("%s is no regular file: move it away", path)))
	}
	list, err := readHistory(f, from, to)
	if err != nil {
		return nil, fmt.Errorf("read the history of claims %s: %w", path, err)
	}
	return list, nil
}

func readHistory(r io.Reader, from, to time.Time) (list []Record, err error) {
	type key struct {
		pid   int
		since int64
	}
	place := map[key]int{}
	in := bufio.NewReader(r)
	for {
		row, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // what has no newline is torn
		}
		if err != nil {
			return nil, err
		}
		var rec Record
		if json.Unmarshal(row, &rec) != nil || rec.Since.IsZero() {
			continue
		}
		k := key{rec.PID, rec.Since.UnixNano()}
		if i, known := place[k]; known {
			list[i] = rec // its end
			continue
		}
		place[k] = len(list)
		list = append(list, rec)
	}
	list = slices.DeleteFunc(list, func(r Record) bool {
		end := r.Until
		if r.Ended != nil {
			end = *r.Ended
		}
		return r.Since.After(to) || end.Before(from)
	})
	slices.SortStableFunc(list, func(a, b Record) int { return a.Since.Compare(b.Since) })
	return list, nil
}

// remember adds a line to a history.
func remember(path string, r Record) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = atomicfile.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = atomicfile.Append(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the history of claims: %w", err)
	}
	return nil
}
