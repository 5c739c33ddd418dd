package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Edit is a change of one unit file or drop-in that has not been made yet.
type Edit struct {
	Path string
	Data []byte // the bytes as if written
	Gone bool   // as if removed; Data is not looked at
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
	settings := Effective(files, NewEnvironmentReader(), specifiers.forUnit(u.ID, u.FragmentPath))
	settings.Problems = append(lost, settings.Problems...)
	return settings, nil
}
