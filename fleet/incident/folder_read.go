package incident

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/1bit-systems/pkg/systemd"
)

// Read gives the evidence of a folder that Write made. A damaged one, or one that lacks a part of its log, is an error
// that says so; what somebody changed in it, as to take out a secret, is a line in Evidence.Missing.
func Read(dir string) (*Evidence, error) {
	e, err := read(dir)
	if err != nil {
		return nil, fmt.Errorf("read the incident: %w", err)
	}
	return e, nil
}

func read(dir string) (*Evidence, error) {
	path := filepath.Join(dir, evidenceName)
	b, err := readBounded(path, maxEvidence)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no folder of an incident, which has %s: %w", dir, evidenceName, err)
	}
	if err != nil {
		return nil, err
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := knownSchema(version.Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	whole := kept{Evidence: &Evidence{}}
	if err := json.Unmarshal(b, &whole); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	e := whole.Evidence
	if e == nil || e.Unit == "" || e.GatheredAt.IsZero() {
		return nil, fmt.Errorf("%s is no evidence of an incident", path)
	}
	for _, name := range slices.Sorted(maps.Keys(whole.Beside)) {
		b, changed, err := readBeside(dir, name, whole.Beside[name])
		if err == nil {
			err = e.take(name, b)
		}
		if err != nil {
			return nil, err
		}
		if changed {
			e.Missing = append(e.Missing, fmt.Sprintf("what %s was when it was written: somebody changed it since", name))
		}
	}
	return e, nil
}

// knownSchema refuses what this program cannot read: what a newer one wrote, and what has no schema.
func knownSchema(schema int) error {
	switch {
	case schema > Schema:
		return fmt.Errorf("a newer program wrote it (schema %d, this one knows %d): use one as new", schema, Schema)
	case schema < 1:
		return errors.New("it is none of an incident: it has no schema")
	}
	return nil
}

// readBeside reads a file that lies beside the evidence. changed says that it is not as it was written.
func readBeside(dir, name string, was keptFile) (b []byte, changed bool, err error) {
	if !filepath.IsLocal(name) {
		return nil, false, fmt.Errorf("%s names a file outside of the folder: %q", evidenceName, name)
	}
	path := filepath.Join(dir, name)
	b, err = readBounded(path, maxEvidence)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("%s is not whole: %s is missing: copy the folder anew", dir, name)
	}
	if err != nil {
		return nil, false, err
	}
	if n := countOf(name, b); n != was.Entries {
		return nil, false, fmt.Errorf("%s is not whole: %s has %d entries, and %d were written: copy the folder anew", dir, name, n, was.Entries)
	}
	return b, digest(b) != was.SHA256, nil
}

// take takes in a file that lies beside the evidence.
func (e *Evidence) take(name string, b []byte) (err error) {
	switch name {
	case entriesName:
		e.Entries, err = parseEntries(b)
	case kernelName:
		e.Kernels, err = parseEntries(b)
	case actionsName:
		err = json.Unmarshal(b, &e.Actions)
	case manifestName:
		e.Manifest = b
	}
	if err != nil {
		return fmt.Errorf("%s:%w", name, err)
	}
	return nil
}

// parseEntries reads a log. A torn or foreign line is an error: the folder was whole when it was made.
func parseEntries(b []byte) ([]systemd.Entry, error) {
	var entries []systemd.Entry
	n := 0
	for line := range bytes.Lines(b) {
		n++
		e, err := decodeEntry(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, fmt.Errorf("%d: %w", n, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// countOf is the number of entries in a log, 0 for other files.
func countOf(name string, b []byte) int {
	if name != entriesName && name != kernelName {
		return 0
	}
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
