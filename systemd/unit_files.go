package systemd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// UnitFiles is what lies in a manager's unit folders, by name: what it would find for a service,
// without a question to it. Contents are not read.
type UnitFiles struct {
	search   []string
	services map[string][]string // a service's name to its files, the strongest first
	dropIns  map[string][]string // a drop-in folder to the drop-ins in it
	wanted   map[string]bool     // services that a .wants, .requires or .upholds folder names
	unread   map[string]bool     // folders that may not be read
	linked   map[string]bool     // drop-in folders that are symbolic links
	aliases  map[string][]string // a name to those that link to it, and to those that it links to

	once  sync.Once
	older bool // what foldersOlderThan found
}

// ListUnitFiles lists the folders of a search path, the strongest first. A folder that is not
// there holds nothing; of one that may not be read it is known that it may hold anything.
func ListUnitFiles(searchPath []string) *UnitFiles {
	f := &UnitFiles{
		search: searchPath, services: map[string][]string{}, dropIns: map[string][]string{},
		wanted: map[string]bool{}, unread: map[string]bool{}, linked: map[string]bool{}, aliases: map[string][]string{},
	}
	for _, dir := range searchPath {
		for _, entry := range f.entries(dir) {
			f.take(filepath.Join(dir, entry.Name()), entry)
		}
	}
	return f
}

func (f *UnitFiles) entries(dir string) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		f.unread[dir] = true
	}
	return entries
}

// take takes in one entry of a unit folder.
func (f *UnitFiles) take(path string, entry fs.DirEntry) {
	name := entry.Name()
	link := entry.Type()&fs.ModeSymlink != 0
	switch suffix := filepath.Ext(name); {
	case suffix == ".service" && !entry.IsDir():
		f.services[name] = append(f.services[name], path)
		if target, err := os.Readlink(path); link && err == nil {
			if base := filepath.Base(target); base != name && strings.HasSuffix(base, ".service") {
				f.aliases[name] = append(f.aliases[name], base)
				f.aliases[base] = append(f.aliases[base], name)
			}
		}
	case suffix == ".d" && (entry.IsDir() || link):
		if link {
			f.linked[path] = true
		}
		for _, one := range f.entries(path) {
			if isDropIn(one.Name()) {
				f.dropIns[path] = append(f.dropIns[path], filepath.Join(path, one.Name()))
			}
		}
		if _, have := f.dropIns[path]; !have {
			f.dropIns[path] = nil
		}
	case (suffix == ".wants" || suffix == ".requires" || suffix == ".upholds") && (entry.IsDir() || link):
		for _, one := range f.entries(path) {
			if strings.HasSuffix(one.Name(), ".service") {
				f.wanted[one.Name()] = true
			}
		}
	}
}

// Services lists every service that is named in the folders: by a file, a drop-in folder or a
// folder of those that are wanted. Templates are among them.
func (f *UnitFiles) Services() []string {
	var names []string
	for name := range f.services {
		names = append(names, name)
	}
	for name := range f.wanted {
		names = append(names, name)
	}
	for dir := range f.dropIns {
		if name := strings.TrimSuffix(filepath.Base(dir), ".d"); !strings.HasSuffix(name, "-.service") { // those of other units
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isServiceName(name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// isServiceName says whether a name can be a service's or the template's of some.
func isServiceName(name string) bool {
	return strings.HasSuffix(name, ".service") && validUnitName(strings.Replace(name, "@.", "@x.", 1))
}

// IsTemplate says whether a name is that of a template, such as llm@.service.
func IsTemplate(name string) bool { return strings.HasSuffix(name, "@.service") }

// Instances lists the instances of a template among names.
func Instances(template string, names []string) []string {
	prefix := strings.TrimSuffix(template, ".service")
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && name != template {
			found = append(found, name)
		}
	}
	return found
}

// fragments lists the files that a service's own settings may come from, the strongest first.
func (f *UnitFiles) fragments(name string) []string {
	if files := f.services[name]; len(files) > 0 {
		return files
	}
	return f.services[templateOf(name)]
}

// templateOf is the template of an instance, "" of what is none.
func templateOf(name string) string {
	stem := strings.TrimSuffix(name, ".service")
	prefix, instance, ok := strings.Cut(stem, "@")
	if !ok || instance == "" {
		return ""
	}
	return prefix + "@.service"
}

// Files lists what a manager may read for a service: its file and the drop-ins of every folder,
// also those that a stronger one of the same name hides. hidden says that there may be more, in a
// folder that cannot be read or under too many names.
func (f *UnitFiles) Files(name string) (files []string, hidden bool) {
	names := f.names(name)
	hidden = len(names) > maxNames
	files = append(files, f.fragments(name)...)
	for _, dir := range dropInFolders(names, f.search) {
		files = append(files, f.dropIns[dir]...)
		hidden = hidden || f.unread[dir]
	}
	for _, dir := range f.search {
		hidden = hidden || f.unread[dir]
	}
	return files, hidden
}

// maxNames bounds the names of one service that are looked at.
const maxNames = 50

// names lists every name that a service may have by links, its own first: over several links,
// from template to template, and also by links that do not count because a stronger file has
// their name. Which of them count only the manager tells.
func (f *UnitFiles) names(name string) []string {
	names := []string{name}
	for i := 0; i < len(names) && len(names) <= maxNames; i++ {
		template := templateOf(names[i])
		for _, alias := range slices.Concat(f.aliases[names[i]], f.aliases[template]) {
			if prefix, ok := strings.CutSuffix(alias, "@.service"); ok && template != "" {
				alias = prefix + strings.TrimPrefix(names[i], strings.TrimSuffix(template, "@.service"))
			}
			if len(names) <= maxNames && !slices.Contains(names, alias) {
				names = append(names, alias)
			}
		}
	}
	return names
}

// DropInOwner tells whose drop-in a file is: the unit, template, prefix of names or kind of unit
// that its folder is named after, such as llm@.service for all instances of llm@.service.
func DropInOwner(path string) string {
	owner, ok := strings.CutSuffix(filepath.Base(filepath.Dir(path)), ".d")
	if !ok {
		return ""
	}
	return owner
}

// Unit makes of a loaded service, as it is listed, what its files say the rest is. ok is false
// where the manager has to be asked: a file was changed at or after since (or it is not known when
// the manager read it), may not be read, is empty, or is reached over a link to a folder, or the
// service may have another name. A service that is not loaded has an empty state in listed; its
// files say all.
//
// The times are those of the inodes, which nobody can set back. A folder's changes when a file in
// it comes, goes or is replaced.
func (f *UnitFiles) Unit(listed Listed, since time.Time) (u *Unit, ok bool) {
	fragments := f.fragments(listed.Name)
	if len(fragments) == 0 || since.IsZero() || len(f.names(listed.Name)) > 1 {
		return nil, false
	}
	u = &Unit{
		ID: listed.Name, Names: []string{listed.Name}, Description: listed.Description,
		LoadState: listed.LoadState, ActiveState: listed.ActiveState, SubState: listed.SubState,
		FragmentPath: fragments[0], SearchPath: f.search,
	}
	found := map[string]bool{}
	u.folders = []string{}
	for _, dir := range dropInFolders(u.names(), f.search) {
		paths, there := f.dropIns[dir]
		if !there {
			continue
		}
		if f.unread[dir] || f.linked[dir] || !olderThan(dir, since) {
			return nil, false
		}
		u.folders = append(u.folders, dir)
		for _, path := range paths {
			if name := filepath.Base(path); !found[name] {
				found[name] = true
				u.DropInPaths = append(u.DropInPaths, path)
			}
		}
	}
	slices.SortFunc(u.DropInPaths, compareNames)
	for _, path := range append([]string{u.FragmentPath}, u.DropInPaths...) {
		if !olderThan(path, since) {
			return nil, false
		}
	}
	return u, f.foldersOlderThan(since)
}

// foldersOlderThan says whether nothing came into or went from the unit folders themselves. What
// the manager puts into some of them for itself says nothing of a service with a file.
func (f *UnitFiles) foldersOlderThan(since time.Time) bool {
	f.once.Do(func() {
		f.older = true
		for _, dir := range f.search {
			name := filepath.Base(dir)
			if name == "transient" || strings.HasSuffix(name, ".control") {
				continue
			}
			if _, err := os.Lstat(dir); err == nil && (f.unread[dir] || !olderThan(dir, since)) {
				f.older = false
			}
		}
	})
	return f.older
}

// clockStep is how far a file's time may lag behind the clock: it is taken from the last tick. Twice
// that leaves room for a late one.
func clockStep() time.Duration {
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_REALTIME_COARSE, &tick); err != nil {
		return 20 * time.Millisecond
	}
	return 2 * time.Duration(tick.Nano())
}

// olderThan says whether a file, and what it is a link to, was last changed before a time.
func olderThan(path string, since time.Time) bool {
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := stat(path)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !time.Unix(st.Ctim.Unix()).Add(clockStep()).Before(since) {
			return false
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return true
		}
	}
	return true
}
