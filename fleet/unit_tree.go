package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

// maxUnitFile bounds what is read as somebody's unit file, in bytes.
const maxUnitFile = 16 << 20

// unitTree is what the unit folders say of packages, read from disk.
type unitTree struct {
	ours  string   // what cannot be read below it is an error
	homes []string // what %h may stand for

	files  []unitFile
	uses   []use
	unread []error // what would have to be read and could not

	seen  map[fileID]bool
	links map[string]string // what a path is without links
}

// unitFile is a file that mentions packages.
type unitFile struct {
	path string
	data []byte
	but  string // the package that is told of already
}

type fileID struct{ dev, inode uint64 }

// unitTree reads the folders, each file once by whatever name.
func (h *Host) unitTree() *unitTree {
	homes := h.homes()
	t := &unitTree{ours: filepath.Clean(h.UnitDir), homes: homes, seen: map[fileID]bool{}, links: map[string]string{}}
	for _, dir := range h.unitFolders(homes) {
		t.readFolder(filepath.Clean(dir))
	}
	return t
}

// readFolder reads a unit folder and the folders in it.
func (t *unitTree) readFolder(dir string) {
	for _, e := range t.entries(dir) {
		path := filepath.Join(dir, e.Name())
		if !t.isFolder(path, e) {
			t.readFile(path)
			continue
		}
		pair := map[string][]byte{}
		for _, f := range t.entries(path) {
			name := f.Name()
			file := filepath.Join(path, name)
			switch {
			case slices.Contains(pairNames[:], name):
				if data := t.read(file, t.mark); data != nil {
					pair[name] = data
				}
			case atomicfile.IsTemp(name) && ours(name): // never in force
			case !t.isFolder(file, f):
				t.readFile(file)
			}
		}
		t.addPair(path, pair)
	}
}

// pairNames are the files of ours in a drop-in folder.
var pairNames = [...]string{dropInName, prevName, nextName, prevNextName}

// entries lists a folder that was not listed before.
func (t *unitTree) entries(dir string) []fs.DirEntry {
	info, err := os.Stat(dir)
	if err == nil && t.isSeen(info) {
		return nil
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	t.fail(dir, err)
	return entries
}

func (t *unitTree) isSeen(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	id := fileID{st.Dev, st.Ino}
	seen := t.seen[id]
	t.seen[id] = true
	return seen
}

// mark notes a file of ours as read. It is read under every name all the same: each is of another unit.
func (t *unitTree) mark(info fs.FileInfo) bool {
	t.isSeen(info)
	return false
}

func (t *unitTree) isFolder(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fail notes what could not be read, less what is not there and what, outside of our folder, may not be read.
func (t *unitTree) fail(path string, err error) {
	mine := path == t.ours || strings.HasPrefix(path, t.ours+"/")
	switch {
	case err == nil, absent(err), !mine && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)):
		return
	}
	t.unread = append(t.unread, err)
}

// readFile takes in a file that may mention a package.
func (t *unitTree) readFile(path string) {
	data := t.read(path, t.isSeen)
	if len(data) == 0 {
		return
	}
	t.add(path, data)
	if bytes.Contains(data, []byte("EnvironmentFile")) {
		t.addEnvironmentFiles(path, data)
	}
}

// read returns the bytes of a file, nil where it is not there, is no regular file, or is to be skipped.
func (t *unitTree) read(path string, skip func(fs.FileInfo) bool) []byte {
	f, info, err := systemd.OpenRegular(path)
	if err != nil {
		t.fail(path, err)
		return nil
	}
	if f == nil {
		return nil
	}
	defer f.Close()
	if skip(info) {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(systemd.NoWait(f), maxUnitFile+1))
	if err == nil && len(data) > maxUnitFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxUnitFile)
	}
	t.fail(path, err)
	return data
}

// add keeps a text if it mentions a package, written out or over a link.
func (t *unitTree) add(path string, data []byte) {
	text := append(append(data[:len(data):len(data)], '\n'), unescaped(data)...)
	for _, word := range bytes.FieldsFunc(data, func(r rune) bool { return strings.ContainsRune(endsPath, r) }) {
		word = bytes.TrimLeft(word, "-@+!~")
		for _, at := range t.expand(string(word)) {
			if real := t.resolve(at); real != at && strings.Contains(real, packager.DirPrefix) {
				text = append(append(text, '\n'), real...)
			}
		}
	}
	if bytes.Contains(text, []byte(packager.DirPrefix)) {
		t.files = append(t.files, unitFile{path: path, data: text})
	}
}

// expand lists the absolute paths that a path with %h at its beginning may be.
func (t *unitTree) expand(path string) []string {
	rest, ok := strings.CutPrefix(path, "%h/")
	switch {
	case ok:
		var out []string
		for _, home := range t.homes {
			out = append(out, filepath.Join(home, rest))
		}
		return out
	case filepath.IsAbs(path):
		return []string{filepath.Clean(path)}
	}
	return nil
}

// resolve follows the links in a path, as far as it exists.
func (t *unitTree) resolve(path string) string {
	if path == "/" {
		return path
	}
	if real, ok := t.links[path]; ok {
		return real
	}
	dir := t.resolve(filepath.Dir(path))
	real := filepath.Join(dir, filepath.Base(path))
	if info, err := os.Lstat(real); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(real); err == nil {
			real = target
		}
	}
	t.links[path] = real
	return real
}

// addEnvironmentFiles takes in what a unit file has systemd read at every start. A specifier other than that of the
// home folder may stand for anything but a slash.
func (t *unitTree) addEnvironmentFiles(path string, data []byte) {
	file, err := systemd.ParseFile(path, data)
	if err != nil {
		return // larger than what was read
	}
	read := systemd.NewEnvironmentReader()
	for _, line := range file.Lines {
		if line.Key != "EnvironmentFile" {
			continue
		}
		for _, pattern := range t.expand(strings.TrimPrefix(line.Value, "-")) {
			for at := strings.IndexByte(pattern, '%'); at >= 0 && at+1 < len(pattern); at = strings.IndexByte(pattern, '%') {
				pattern = pattern[:at] + "*" + pattern[at+2:]
			}
			found, err := read(pattern)
			t.fail(path, err)
			for _, one := range found {
				if errors.Is(one.Err, systemd.ErrTooMuch) {
					t.fail(path, one.Err)
				}
				if one.Err == nil && !slices.ContainsFunc(t.files, func(f unitFile) bool { return f.path == one.Path }) {
					t.add(one.Path, one.Data)
				}
			}
		}
	}
}

// addPair takes in our files of one drop-in folder. What they name is needed also where the service was rolled back
// from it: --undo returns to that.
func (t *unitTree) addPair(dir string, pair map[string][]byte) {
	if len(pair) == 0 {
		return
	}
	unit := strings.TrimSuffix(filepath.Base(dir), ".d")
	decoded := map[string]*DropIn{}
	for _, name := range pairNames {
		data, ok := pair[name]
		if !ok {
			continue
		}
		d, err := DecodeDropIn(data)
		if err != nil {
			t.add(filepath.Join(dir, name), data) // whatever it mentions may be needed
			continue
		}
		decoded[name] = d
	}
	hows := [...]string{"on disk for", previous(pair, decoded), "staged for", "staged for"}
	for i, name := range pairNames {
		d := decoded[name]
		if d == nil {
			continue
		}
		t.use(d.ServedBefore, "served before in "+unit)
		t.use(d.Package, hows[i]+" "+unit)
		if name == dropInName { // an undo goes there also where another file has taken the place of what was put away
			t.use(d.RolledBackFrom, whatUndoReturnsTo+" "+unit)
		}
		var values []byte
		for _, a := range d.Environment {
			values = append(append(values, a.Value...), '\n')
		}
		t.files = append(t.files, unitFile{filepath.Join(dir, name), values, filepath.Base(d.Package.Path)})
	}
}

const whatUndoReturnsTo = "what rollback --undo returns to in"

// previous says what .prev is needed for: it is the file that a rollback would put in place, or one that a rollback
// put away, which its --undo takes back.
func previous(pair map[string][]byte, decoded map[string]*DropIn) string {
	active, prev := decoded[dropInName], decoded[prevName]
	_, edited := pair[dropInName]
	switch {
	case active != nil && active.rolledBack(), prev != nil && !prev.rolledBack() && (active != nil || !edited):
		return whatUndoReturnsTo
	}
	return "what a rollback goes to in"
}

func (t *unitTree) use(ref PackageRef, how string) {
	if !ref.isZero() {
		t.uses = append(t.uses, use{ref, how})
	}
}

// instantiate replaces the specifiers in files that mention a package by what they are for the units that read the
// file: the one that it is of, or the known instances of its template.
func (t *unitTree) instantiate(units []string) {
	byTemplate := map[string][]string{}
	slices.Sort(units)
	for _, unit := range slices.Compact(units) {
		if of := template(unit); of != "" {
			byTemplate[of] = append(byTemplate[of], unit)
		}
	}
	for i, f := range t.files {
		if !bytes.ContainsRune(f.data, '%') {
			continue
		}
		unit := filepath.Base(f.path)
		if dir, ok := strings.CutSuffix(filepath.Base(filepath.Dir(f.path)), ".d"); ok {
			unit = dir
		}
		readers := []string{unit}
		switch of := template(unit); {
		case of != "":
			readers = byTemplate[of]
		case strings.HasSuffix(unit, "@.service"):
			readers = byTemplate[unit]
		case !strings.HasSuffix(unit, ".service") || strings.HasSuffix(unit, "-.service"):
			continue // many units read it
		}
		var text []byte
		for _, reader := range readers {
			text = append(append(text, specified(f.data, reader)...), '\n')
		}
		t.files[i].data = text
	}
}
