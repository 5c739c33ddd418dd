package systemd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// EnvironmentReader finds and reads the files that the pattern of an EnvironmentFile= matches,
// in order. No match is fs.ErrNotExist.
type EnvironmentReader func(pattern string) ([]EnvironmentBytes, error)

// EnvironmentBytes is one environment file.
type EnvironmentBytes struct {
	Path string
	Data []byte
	Err  error // it could not be read
	// Unordered says why it is not certain in which order systemd takes the files of the pattern;
	// "" when it is.
	Unordered string
}

// ReadEnvironmentFiles is the EnvironmentReader of the real file system, for one pattern.
func ReadEnvironmentFiles(pattern string) ([]EnvironmentBytes, error) {
	return NewEnvironmentReader()(pattern)
}

// NewEnvironmentReader makes an EnvironmentReader of the real file system for all patterns of one
// unit. Together they may name all that there is, and the unit may be anybody's: beyond some
// thousand folder entries or 16 MiB there is an error, and what the files say is not certain.
//
// It matches a pattern as glob(3) does. What that makes of a character that is not ASCII, of a
// range such as [+-.] and of the order of matches depends on the locale of the manager, which may
// or may not have taken up the one in its environment: where locales differ there is an error.
func NewEnvironmentReader() EnvironmentReader {
	r := &environmentReader{entries: 20_000, files: 1000, bytes: 16 << 20}
	return r.read
}

// environmentReader is what may still be looked at for a unit.
type environmentReader struct{ entries, files, bytes int }

// ErrTooMuch is wrapped where a unit has more read than we read for it.
var ErrTooMuch = errors.New("this is more than is looked at for one unit")

func (r *environmentReader) read(pattern string) ([]EnvironmentBytes, error) {
	paths, err := r.glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, &fs.PathError{Op: "glob", Path: pattern, Err: fs.ErrNotExist}
	}
	slices.Sort(paths)
	unordered := ""
	for i := range paths[1:] {
		if !sameOrder(paths[i], paths[i+1]) {
			unordered = fmt.Sprintf("which one of %s and %s comes first depends on the locale of the manager", paths[i], paths[i+1])
		}
	}
	var files []EnvironmentBytes
	for _, one := range paths {
		if r.files--; r.files < 0 {
			return nil, fmt.Errorf("%s: %w", pattern, ErrTooMuch)
		}
		data, err := r.readOne(one)
		if len(paths) == 1 && errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		files = append(files, EnvironmentBytes{Path: one, Data: data, Err: err, Unordered: unordered})
	}
	return files, nil
}

// readOne reads one file. Of the devices only /dev/null is known to be one without an end.
func (r *environmentReader) readOne(name string) ([]byte, error) {
	file, info, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	if file == nil && isNull(info) {
		return nil, nil
	}
	data, err := readOpen(file, name, r.bytes)
	r.bytes -= len(data)
	return data, err
}

func isNull(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == unix.Mkdev(1, 3)
}

// glob lists what a pattern matches, unsorted.
func (r *environmentReader) glob(pattern string) ([]string, error) {
	paths := []string{"/"}
	parts := strings.Split(strings.Trim(path.Clean(pattern), "/"), "/")
	for i, text := range parts {
		last := i == len(parts)-1
		part, err := parseGlob(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		var next []string
		for _, dir := range paths {
			if literal, ok := part.literal(); ok {
				next = append(next, path.Join(dir, literal))
				continue
			}
			names, err := r.names(dir, part, last)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", pattern, err)
			}
			next = append(next, names...)
		}
		paths = next
	}
	if !strings.ContainsAny(pattern, `*?[`) { // one path: whether it is there turns out when it is opened
		return paths, nil
	}
	var err error
	paths = slices.DeleteFunc(paths, func(name string) bool {
		_, missing := os.Lstat(name)
		if missing != nil && !isNothing(missing) {
			err = fmt.Errorf("%s: %w", pattern, missing)
		}
		return missing != nil
	})
	return paths, err
}

// names lists the entries of a folder that match a part of a pattern; before the last part only
// those that may be folders.
func (r *environmentReader) names(dir string, part globPart, last bool) ([]string, error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if isNothing(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []string
	for {
		entries, err := file.ReadDir(500)
		for _, entry := range entries {
			if r.entries--; r.entries < 0 {
				return nil, ErrTooMuch
			}
			if !last && !entry.IsDir() && entry.Type()&fs.ModeSymlink == 0 {
				continue
			}
			matches, err := part.matches(entry.Name())
			if err != nil {
				return nil, err
			}
			if matches {
				found = append(found, path.Join(dir, entry.Name()))
			}
		}
		if errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// isNothing says whether an error is that there is no such folder or file, for anybody.
func isNothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// sameOrder says whether every locale sorts a before b, as their bytes do. That is so where they
// differ first in two digits or two letters, or where one begins with the other. Locales do not
// agree on upper and lower case, nor on punctuation, which some pass over.
func sameOrder(a, b string) bool {
	if strings.HasPrefix(b, a) {
		return true
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	x, y := a[i], b[i]
	switch {
	case isDigit(x):
		return isDigit(y) || isLetter(y)
	case isLetter(x):
		return isLetter(y) && x|0x20 < y|0x20
	}
	return false
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
