package packager

import (
	"maps"
	"slices"
	"strings"
)

// Difference is what tells package B from package A, as far as the manifests
// say. Lists are sorted by name, and empty where nothing differs.
type Difference struct {
	Pins         []PinChange         `json:"pins"`
	Fixes        []FixChange         `json:"fixes"`
	Files        []FileChange        `json:"files"`
	EntryPoints  []ValueChange       `json:"entry_points"`
	FrontDoor    []ValueChange       `json:"front_door"`
	Requirements []RequirementChange `json:"requirements"`
	Libraries    []LibraryChange     `json:"host_libraries"`
	GPUTargets   []ValueChange       `json:"gpu_targets"`
	// Machine and Glibc are nil where they are the same.
	Machine *ValueChange `json:"machine"`
	Glibc   *ValueChange `json:"glibc"`
	// FromSize and ToSize are the sums of the files' sizes in bytes.
	FromSize int64 `json:"from_size"`
	ToSize   int64 `json:"to_size"`
}

// PinChange is a component that moved, came (From is "") or went (To is "").
type PinChange struct {
	Component string `json:"component"`
	From      string `json:"from"`
	To        string `json:"to"`
	// Dirty is true if either checkout had changes that no commit holds: even
	// the same commit is then not the same source. FromDirty and ToDirty say
	// which.
	Dirty     bool `json:"dirty,omitempty"`
	FromDirty bool `json:"from_dirty,omitempty"`
	ToDirty   bool `json:"to_dirty,omitempty"`
}

// Moved is false of a component that is at the same commit in both.
func (c PinChange) Moved() bool { return !sameCommit(c.From, c.To) }

// Kinds of change of a fix. What only one package speaks of is unknown in the
// other: a package without an answer does not say no.
const (
	FixGained  = "gained"  // carried now, known not to be before
	FixLost    = "lost"    // carried before, known not to be now
	FixLearned = "learned" // unknown before, and known now
	FixUnclear = "unclear" // known before, and unknown now
)

// FixChange is a fix that A and B do not answer alike.
type FixChange struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Change string `json:"change"`
	// From and To are whether A and B carry it; nil is unknown.
	From *bool `json:"from"`
	To   *bool `json:"to"`
	// How is what B says of it; of a fix that B does not know it is "".
	How string `json:"how"`
}

// FileChange is a file or link that was added (From is nil), removed (To is
// nil) or changed. Folders are left out.
type FileChange struct {
	Path string `json:"path"`
	From *File  `json:"from"`
	To   *File  `json:"to"`
}

// Growth is by how many bytes the file grew.
func (c FileChange) Growth() int64 {
	var n int64
	if c.To != nil {
		n += c.To.Size
	}
	if c.From != nil {
		n -= c.From.Size
	}
	return n
}

// ValueChange is a value that was added (From is ""), removed (To is "") or
// changed.
type ValueChange struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// RequirementChange is something the host must have now (To is set) or had to
// have before (From is set), or with another value.
type RequirementChange struct {
	Kind string  `json:"kind"`
	Name string  `json:"name"`
	From *string `json:"from"` // the value, "" for what has none
	To   *string `json:"to"`
}

// LibraryChange is a library that the host must have now, had to have before,
// or that is looked for elsewhere.
type LibraryChange struct {
	Name string       `json:"name"`
	From *HostLibrary `json:"from"`
	To   *HostLibrary `json:"to"`
}

// Compare tells what of b is not as in a. It looks at nothing but the two
// manifests.
func Compare(a, b *Manifest) *Difference {
	d := &Difference{FromSize: a.Size(), ToSize: b.Size()}
	d.Pins = comparePins(a.Components, b.Components)
	d.Fixes = compareFixes(a.Fixes, b.Fixes)
	d.Files = compareFiles(a.Files, b.Files)
	d.EntryPoints = compareValues(a.EntryPoints, b.EntryPoints)
	d.FrontDoor = compareValues(asValues(a.FrontDoor), asValues(b.FrontDoor))
	d.GPUTargets = compareValues(asValues(a.GPUTargets), asValues(b.GPUTargets))
	d.Requirements = compareRequirements(a.Requires, b.Requires)
	d.Libraries = compareLibraries(a.HostLibraries, b.HostLibraries)
	d.Machine = compareValue("machine", a.Machine, b.Machine)
	d.Glibc = compareValue("glibc", a.Glibc, b.Glibc)
	return d
}

// Same tells whether nothing differs.
func (d *Difference) Same() bool {
	return len(d.Pins)+len(d.Fixes)+len(d.Files)+len(d.EntryPoints)+len(d.FrontDoor)+len(d.Requirements)+
		len(d.Libraries)+len(d.GPUTargets) == 0 && d.Machine == nil && d.Glibc == nil
}

// each calls f with what a and b say of every name, in order.
func each[T any](a, b map[string]T, f func(name string, from, to *T)) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		var from, to *T
		if v, ok := a[name]; ok {
			from = &v
		}
		if v, ok := b[name]; ok {
			to = &v
		}
		f(name, from, to)
	}
}

func byName[T any](list []T, name func(T) string) map[string]T {
	m := make(map[string]T, len(list))
	for _, v := range list {
		m[name(v)] = v
	}
	return m
}

func comparePins(a, b []Component) []PinChange {
	changes := []PinChange{}
	name := func(c Component) string { return c.Name }
	each(byName(a, name), byName(b, name), func(name string, from, to *Component) {
		c := PinChange{Component: name}
		if from != nil {
			c.From, c.FromDirty = from.Commit, from.Dirty
		}
		if to != nil {
			c.To, c.ToDirty = to.Commit, to.Dirty
		}
		c.Dirty = c.FromDirty || c.ToDirty
		if c.Dirty || c.Moved() {
			changes = append(changes, c)
		}
	})
	return changes
}

// sameCommit takes the beginning of an id for the whole, as a declared pin may
// be short.
func sameCommit(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func compareFixes(a, b []Fix) []FixChange {
	changes := []FixChange{}
	id := func(f Fix) string { return f.ID }
	each(byName(a, id), byName(b, id), func(id string, from, to *Fix) {
		c := FixChange{ID: id}
		if from != nil {
			c.Title, c.From = from.Title, from.Carried
		}
		if to != nil {
			c.Title, c.To, c.How = to.Title, to.Carried, to.How
		}
		switch {
		case c.From == nil && c.To == nil:
			return
		case c.From == nil:
			c.Change = FixLearned
		case c.To == nil:
			c.Change = FixUnclear
		case *c.From == *c.To:
			return
		case *c.To:
			c.Change = FixGained
		default:
			c.Change = FixLost
		}
		changes = append(changes, c)
	})
	return changes
}

func compareFiles(a, b []File) []FileChange {
	changes := []FileChange{}
	path := func(f File) string { return f.Path }
	each(byName(a, path), byName(b, path), func(path string, from, to *File) {
		if isFolder(from) {
			from = nil
		}
		if isFolder(to) {
			to = nil
		}
		switch {
		case from == nil && to == nil:
		case from != nil && to != nil && sameFile(*from, *to):
		default:
			changes = append(changes, FileChange{path, from, to})
		}
	})
	return changes
}

func isFolder(f *File) bool { return f != nil && f.Type == TypeDir }

// sameFile compares what a package is identified by, and takes the modes of an
// imported package for those they stand for.
func sameFile(a, b File) bool {
	return a.Type == b.Type && a.SHA256 == b.SHA256 && a.Target == b.Target && a.Mode&0o100 == b.Mode&0o100
}

func asValues(list []string) map[string]string {
	return byName(list, func(s string) string { return s })
}

func compareValues(a, b map[string]string) []ValueChange {
	changes := []ValueChange{}
	each(a, b, func(name string, from, to *string) {
		if c := compareValue(name, orEmpty(from), orEmpty(to)); c != nil {
			changes = append(changes, *c)
		}
	})
	return changes
}

func compareValue(name, from, to string) *ValueChange {
	if from == to {
		return nil
	}
	return &ValueChange{name, from, to}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func compareRequirements(a, b []Requirement) []RequirementChange {
	changes := []RequirementChange{}
	key := func(r Requirement) string { return r.Kind + " " + r.Name }
	each(byName(a, key), byName(b, key), func(key string, from, to *Requirement) {
		var c RequirementChange
		c.Kind, c.Name, _ = strings.Cut(key, " ")
		if from != nil {
			c.From = &from.Value
		}
		if to != nil {
			c.To = &to.Value
		}
		if from == nil || to == nil || from.Value != to.Value {
			changes = append(changes, c)
		}
	})
	return changes
}

func compareLibraries(a, b []HostLibrary) []LibraryChange {
	changes := []LibraryChange{}
	name := func(l HostLibrary) string { return l.Name }
	each(byName(a, name), byName(b, name), func(name string, from, to *HostLibrary) {
		// Which file asks for it first is of no account.
		if from == nil || to == nil || !slices.Equal(from.Dirs, to.Dirs) {
			changes = append(changes, LibraryChange{name, from, to})
		}
	})
	return changes
}
