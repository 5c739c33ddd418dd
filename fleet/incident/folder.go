package incident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// The files of an incident's folder. evidenceName and what it names beside it are what Read needs; the others are for people.
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
const stagingPrefix = ".1bit-incident-"

// Their names end with a number.
var reStaging = lazyregexp.New(`^\.1bit-incident-[0-9]+$`)

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
		return taken(dir)
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
	if errors.Is(err, fs.ErrExist) { // since it was looked for
		return errors.Join(taken(dir), os.RemoveAll(staging))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the incident: %w", err), os.RemoveAll(staging))
	}
	return nil
}

func taken(dir string) error {
	return fmt.Errorf("write the incident: %s: %w: name another folder", dir, fs.ErrExist)
}

// mostNames bounds how many folders of one name are tried.
const mostNames = 1000

// WriteFree writes as [Write] does, at dir or, where that is there, at the next free name: dir-2, dir-3, … It gives the
// folder.
func WriteFree(dir string, e *Evidence, r *Report) (string, error) {
	for n := 1; ; n++ {
		at := dir
		if n > 1 {
			at = fmt.Sprintf("%s-%d", dir, n)
		}
		if err := Write(at, e, r); !errors.Is(err, fs.ErrExist) || n == mostNames {
			return at, err
		}
	}
}

// kept is the evidence as its file has it, with what tells whether the files beside it are whole.
type kept struct {
	Schema int `json:"schema"`
	*Evidence
	Beside map[string]keptFile `json:"beside"`
}

type keptFile struct {
	SHA256  string `json:"sha256"`
	Entries int    `json:"entries"` // of a log
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
	entries, err := encodeEntries(e.Entries)
	if err != nil {
		return nil, err
	}
	kernel, err := encodeEntries(e.Kernels)
	if err != nil {
		return nil, err
	}
	files := []file{{entriesName, entries}, {kernelName, kernel}}
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
	whole := kept{Schema, e, map[string]keptFile{}}
	for _, f := range files {
		whole.Beside[f.name] = keptFile{digest(f.data), countOf(f.name, f.data)}
	}
	evidence, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the evidence: %w", err)
	}
	files = append(files, file{markdownName, []byte(r.Markdown())}, file{reportName, append(report, '\n')}, file{evidenceName, append(evidence, '\n')})
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

// stage makes a folder to write in and holds it, so that nobody takes it for what a crash left. Another writer may do so
// before it is held: then there is a next one.
func stage(parent string) (dir string, unlock func(), err error) {
	for range mostNames {
		if dir, err = os.MkdirTemp(parent, stagingPrefix); err != nil {
			return "", nil, err
		}
		var f *os.File
		if f, err = hold(dir); err == nil {
			if _, err = os.Lstat(dir); err == nil {
				return dir, func() { f.Close() }, nil
			}
			f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return "", nil, errors.Join(err, os.Remove(dir))
		}
	}
	return "", nil, err
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

// sweep removes what crashes left: folders of ours that nobody holds. What cannot be removed stays. The folder may be one
// that its owner named, with others' files in it: only what Write makes is removed.
func sweep(parent string) {
	left, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range left {
		if !reStaging().MatchString(entry.Name()) {
			continue
		}
		dir := filepath.Join(parent, entry.Name())
		f, err := hold(dir)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && ownedBy(info, os.Getuid()) && onlyOurs(dir) {
			_ = os.RemoveAll(dir) // it is only in the way
		}
		f.Close()
	}
}

func ownedBy(info fs.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

// onlyOurs tells whether a folder has nothing but what Write puts into one, and what that makes for a moment.
func onlyOurs(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		name := e.Name()
		return name != markdownName && name != reportName && name != filepath.Dir(evidenceName) && !strings.HasPrefix(name, ".")
	})
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
