package systemd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Edit is a change of one unit file or drop-in that has not been made yet.
type Edit struct {
	Path string
	Data []byte // the bytes as if written
	Gone bool   // as if removed; Data is not looked at
}

// EnvironmentReader finds and reads the files that the pattern of an EnvironmentFile= matches,
// in order. No match is fs.ErrNotExist.
type EnvironmentReader func(pattern string) ([]EnvironmentBytes, error)

// EnvironmentBytes is one environment file.
type EnvironmentBytes struct {
	Path string
	Data []byte
	Err  error // it could not be read
}

// ReadSettings reads the files that the manager names for a unit, and the environment files that
// those name, and works out what they amount to. With edits it is as if these were already
// written: a drop-in at a new place is merged where its name puts it. A file that is not there or
// not a file is left out, with a Problem.
//
// The list of drop-ins is the one that is loaded; Unit.Rescan makes it the one of the disk.
func ReadSettings(u *Unit, specifiers Specifiers, edits ...Edit) (*Settings, error) {
	paths := slices.Clone(u.DropInPaths)
	edited := map[string]Edit{}
	for _, edit := range edits {
		var err error
		if paths, err = u.apply(paths, edit); err != nil {
			return nil, fmt.Errorf("work out the settings of %s: %w", u.ID, err)
		}
		edited[edit.Path] = edit
	}
	if u.FragmentPath != "" && !edited[u.FragmentPath].Gone {
		paths = append([]string{u.FragmentPath}, paths...)
	}
	var files []*File
	var lost []Problem
	for _, name := range paths {
		edit, ok := edited[name]
		data := edit.Data
		if !ok {
			var err error
			data, err = readFile(name)
			switch {
			case errors.Is(err, fs.ErrPermission): // systemd may well be allowed to
				return nil, fmt.Errorf("read the settings of %s: %w", u.ID, err)
			case err != nil:
				lost = append(lost, Problem{File: name, What: fmt.Sprintf("left out: %v", err)})
				lost = append(lost, u.hiddenBy(name)...)
				continue
			}
		}
		file, err := ParseFile(name, data)
		if err != nil {
			return nil, fmt.Errorf("read the settings of %s: %w", u.ID, err)
		}
		if file.Empty {
			lost = append(lost, u.hiddenBy(name)...)
		}
		files = append(files, file)
	}
	lost = append(lost, u.linkedFolders()...)
	settings := Effective(files, ReadEnvironmentFiles, specifiers.forUnit(u.ID, u.FragmentPath))
	settings.Problems = append(lost, settings.Problems...)
	return settings, nil
}

// ReadEnvironmentFiles is the EnvironmentReader of the real file system. It matches a pattern as
// glob(3) does, for which a leading dot is not matched by a wildcard.
func ReadEnvironmentFiles(pattern string) ([]EnvironmentBytes, error) {
	paths := []string{pattern}
	if strings.ContainsAny(pattern, `*?[\`) {
		var err error
		paths, err = filepath.Glob(strings.ReplaceAll(pattern, "[!", "[^"))
		if err != nil {
			paths = []string{pattern}
		}
		paths = slices.DeleteFunc(paths, func(found string) bool { return hidden(pattern, found) })
		slices.Sort(paths)
	}
	var files []EnvironmentBytes
	for _, one := range paths {
		data, err := readFile(one)
		if len(paths) == 1 && errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		files = append(files, EnvironmentBytes{Path: one, Data: data, Err: err})
	}
	if len(files) == 0 {
		return nil, &fs.PathError{Op: "glob", Path: pattern, Err: fs.ErrNotExist}
	}
	return files, nil
}

// hidden says whether some part of a found path begins with a dot that the pattern does not spell.
func hidden(pattern, found string) bool {
	parts, want := strings.Split(found, "/"), strings.Split(pattern, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ".") && i < len(want) && !strings.HasPrefix(want[i], ".") && !strings.HasPrefix(want[i], `\.`) {
			return true
		}
	}
	return false
}

// readFile reads a file that ought to be a regular one, without waiting for a pipe or reading a
// device for ever. A character device is taken for /dev/null.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeCharDevice != 0:
		return nil, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(NoWait(file), maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: %w", name, ErrTooBig)
	}
	return data, nil
}
