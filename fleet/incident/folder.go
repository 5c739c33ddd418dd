package incident

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/systemd"
)

// The files of an incident's folder. evidenceName and the two logs are what Read needs; the others are for people.
const (
	markdownName  = "incident.md"
	reportName    = "incident.json"
	evidenceName  = "raw/evidence.json"
	entriesName   = "raw/journal.jsonl"
	kernelName    = "raw/kernel.jsonl"
	manifestName  = "raw/1bit-package.json"
	actionsName   = "raw/actions.json"
	unitFilesName = "raw/unit"
)

// stagingPrefix begins the names of folders that are being written, beside those that are done.
const stagingPrefix = ".incident-"

// Write makes the folder of an incident, whole or not at all, also after a crash or a power loss. It wraps fs.ErrExist
// where dir is there already, and leaves that as it is.
func Write(dir string, e *Evidence, r *Report) error {
	files, err := filesOf(e, r)
	if err != nil {
		return fmt.Errorf("write the incident: %w", err)
	}
	parent := filepath.Dir(dir)
	if err := atomicfile.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("write the incident: %w", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("write the incident: %s: %w: name another folder", dir, fs.ErrExist)
	}
	sweep(parent)
	staging, unlock, err := stage(parent)
	if err != nil {
		return fmt.Errorf("write the incident: %w", err)
	}
	defer unlock()
	if err = fill(staging, files); err == nil {
		err = finish(staging, dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the incident: %w", err), os.RemoveAll(staging))
	}
	return nil
}

type file struct {
	name string
	data []byte
}

func filesOf(e *Evidence, r *Report) ([]file, error) {
	report, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	evidence, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the evidence: %w", err)
	}
	entries, err := encodeEntries(e.Entries)
	if err != nil {
		return nil, err
	}
	kernel, err := encodeEntries(e.Kernels)
	if err != nil {
		return nil, err
	}
	files := []file{
		{markdownName, []byte(r.Markdown())}, {reportName, append(report, '\n')}, {evidenceName, append(evidence, '\n')},
		{entriesName, entries}, {kernelName, kernel},
	}
	if len(e.Manifest) > 0 {
		files = append(files, file{manifestName, e.Manifest})
	}
	if len(e.Actions) > 0 {
		actions, err := json.MarshalIndent(e.Actions, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode the runs: %w", err)
		}
		files = append(files, file{actionsName, append(actions, '\n')})
	}
	for i, f := range e.Files {
		files = append(files, file{fmt.Sprintf("%s/%02d-%s", unitFilesName, i, safeName(filepath.Base(f.Path))), []byte(f.Text)})
	}
	return files, nil
}

// safeName keeps of a name what is harmless in one.
func safeName(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == '/' || c == 0x7f || c > 0x7e {
			return '_'
		}
		return c
	}, name)
	return name[:min(len(name), 100)]
}

// stage makes a folder to write in and holds it, so that nobody takes it for what a crash left.
func stage(parent string) (dir string, unlock func(), err error) {
	if dir, err = os.MkdirTemp(parent, stagingPrefix); err != nil {
		return "", nil, err
	}
	f, err := hold(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, func() { f.Close() }, nil
}

// hold locks a folder while it is open.
func hold(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// sweep removes what crashes left: folders that nobody holds. What cannot be removed stays.
func sweep(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, stagingPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if f, err := hold(dir); err == nil {
			_ = os.RemoveAll(dir) // it is only in the way
			f.Close()
		}
	}
}

// fill writes the files and makes them durable.
func fill(dir string, files []file) error {
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if folder := filepath.Dir(path); folder != dir {
			if err := atomicfile.MkdirAll(folder, 0o700); err != nil {
				return err
			}
		}
		if err := atomicfile.Write(path, f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// finish gives a folder that is whole its name.
func finish(staging, dir string) error {
	if err := atomicfile.RenameNew(staging, dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// maxEvidence bounds each file that is read, in bytes.
const maxEvidence = 256 << 20

// Read gives the evidence of a folder that Write made. A damaged one is an error that says so.
func Read(dir string) (*Evidence, error) {
	b, err := readBounded(filepath.Join(dir, evidenceName), maxEvidence)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the incident: %s is no folder of an incident, which has %s: %w", dir, evidenceName, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the incident: %w", err)
	}
	e := &Evidence{}
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("read the incident: %s: %w", filepath.Join(dir, evidenceName), err)
	}
	if e.Unit == "" || e.GatheredAt.IsZero() {
		return nil, fmt.Errorf("read the incident: %s is no evidence of an incident", filepath.Join(dir, evidenceName))
	}
	for name, to := range map[string]*[]systemd.Entry{entriesName: &e.Entries, kernelName: &e.Kernels} {
		if *to, err = readEntries(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("read the incident: %w", err)
		}
	}
	if b, err = readBounded(filepath.Join(dir, actionsName), maxEvidence); err == nil {
		err = json.Unmarshal(b, &e.Actions)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the incident: %s: %w", filepath.Join(dir, actionsName), err)
	}
	if e.Manifest, err = readBounded(filepath.Join(dir, manifestName), maxEvidence); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the incident: %w", err)
	}
	return e, nil
}

// readEntries reads a log. A torn or foreign line is an error: the folder was whole when it was made.
func readEntries(path string) ([]systemd.Entry, error) {
	b, err := readBounded(path, maxEvidence)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []systemd.Entry
	for n := 1; len(b) > 0; n++ {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := decodeEntry(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
