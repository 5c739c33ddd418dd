package packager

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

const (
	maxName = 255
	maxTag  = 64

	// How far a link is followed: the kernel's 40 links, and a bound on the
	// work that a manifest full of long links can cause.
	maxHops  = 40
	maxSteps = 1024
)

var (
	wordPattern      = lazyregexp.New(`^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$`)
	componentPattern = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	commitPattern    = lazyregexp.New(`^[0-9a-f]{7,64}$`)
	parameterPattern = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	fixPattern       = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._/#-]*[A-Za-z0-9])?$`)
	assignPattern    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)
	libraryPattern   = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
	glibcPattern     = lazyregexp.New(`^[0-9]+(?:\.[0-9]+)+$`)
	digestPattern    = lazyregexp.New(`^[0-9a-f]{64}$`)

	// unseen are the characters that a terminal acts on or shows nothing for:
	// a name with one of them looks like another, or writes over it.
	unseen = []*unicode.RangeTable{
		unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	}
)

// CheckWord says what is wrong with a flavour, an id or a front-door verb: it
// becomes part of directory, asset and native package names on every system,
// so only lower-case letters, digits and, inside, dots and hyphens are left.
func CheckWord(s string) error {
	if len(s) > maxTag || !wordPattern().MatchString(s) {
		return fmt.Errorf("%q is not 1 to %d lower-case letters, digits, dots and hyphens that begin and end with a letter or digit", s, maxTag)
	}
	return nil
}

// CheckComponent says what is wrong with a component's name or commit.
func CheckComponent(c Component) error {
	if len(c.Name) > maxTag || !componentPattern().MatchString(c.Name) {
		return fmt.Errorf("component name %q is not 1 to %d letters, digits, dots, hyphens and underscores", c.Name, maxTag)
	}
	if !commitPattern().MatchString(c.Commit) {
		return fmt.Errorf("commit %q of component %s is not 7 to 64 lower-case hex digits", c.Commit, c.Name)
	}
	return checkText("URL of component "+c.Name, c.URL)
}

// CheckRequirement says what is wrong with a requirement.
func CheckRequirement(r Requirement) error {
	if err := checkText(r.Kind+" requirement", r.Name+r.Value); err != nil {
		return err
	}
	switch r.Kind {
	case RequirePath, RequireDevice:
		if !path.IsAbs(r.Name) || path.Clean(r.Name) != r.Name {
			return fmt.Errorf("%s %q is not a clean absolute path", r.Kind, r.Name)
		}
		if r.Value != "" {
			return fmt.Errorf("%s %q takes no value", r.Kind, r.Name)
		}
	case RequireLibrary:
		if !libraryPattern().MatchString(r.Name) {
			return fmt.Errorf("library %q is not a name such as libvulkan.so.1", r.Name)
		}
		if r.Value != "" {
			return fmt.Errorf("library %q takes no value", r.Name)
		}
	case RequireKernelParameter:
		if !parameterPattern().MatchString(r.Name) {
			return fmt.Errorf("kernel parameter %q is not of the form module.name", r.Name)
		}
		if r.Value == "" {
			return fmt.Errorf("kernel parameter %s has no value", r.Name)
		}
	default:
		return fmt.Errorf("requirement %q is not a path, device, library or kernel_parameter", r.Kind)
	}
	return nil
}

// CheckFix says what is wrong with a fix, whether it is carried or not.
func CheckFix(f Fix) error {
	if len(f.ID) > maxTag || !fixPattern().MatchString(f.ID) {
		return fmt.Errorf("fix %q is not named like engine#123", f.ID)
	}
	if len(f.Component) > maxTag || !componentPattern().MatchString(f.Component) {
		return fmt.Errorf("component %q of fix %s is not 1 to %d letters, digits, dots, hyphens and underscores", f.Component, f.ID, maxTag)
	}
	if len(f.Commits) == 0 {
		return fmt.Errorf("fix %s names no commit", f.ID)
	}
	for i, c := range f.Commits {
		if !commitPattern().MatchString(c) {
			return fmt.Errorf("commit %q of fix %s is not 7 to 64 lower-case hex digits", c, f.ID)
		}
		if slices.Contains(f.Commits[:i], c) {
			return fmt.Errorf("commit %s of fix %s is there twice", c, f.ID)
		}
	}
	if f.Off != "" && !assignPattern().MatchString(f.Off) {
		return fmt.Errorf("what turns fix %s off, %q, is not of the form VARIABLE=value", f.ID, f.Off)
	}
	return checkText("text of fix "+f.ID, f.Title+f.How+f.Off)
}

// CheckPath says what is wrong with the path of an entry: it must be relative,
// clean, valid UTF-8 of characters that can be seen, and neither reach outside
// nor be the manifest's own.
func CheckPath(p string) error {
	switch {
	case p == "" || p == ".":
		return fmt.Errorf("path is empty")
	case len(p) > maxPath:
		return fmt.Errorf("path of %d bytes is longer than %d", len(p), maxPath)
	case path.IsAbs(p) || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("path %q is not clean and relative", p)
	case p == ManifestName:
		return fmt.Errorf("path %q is reserved for the manifest", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > maxName {
			return fmt.Errorf("name of %d bytes in %q is longer than %d", len(part), p, maxName)
		}
	}
	return checkText("path", p)
}

func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s %q is not valid UTF-8", what, s)
	}
	for _, r := range s {
		if unicode.In(r, unseen...) {
			return fmt.Errorf("%s %+q has the control or invisible character %U", what, s, r)
		}
	}
	return nil
}

// Validate checks the whole manifest; the error wraps [ErrIntegrity].
func (m *Manifest) Validate() error {
	for _, check := range []func() error{m.checkHead, m.checkLists, m.checkFixes, m.checkFiles, m.checkLinks, m.checkEntryPoints, m.checkLinkage} {
		if err := check(); err != nil {
			return fmt.Errorf("manifest: %w: %w", err, ErrIntegrity)
		}
	}
	return nil
}

func (m *Manifest) checkHead() error {
	if m.Schema != Schema {
		return fmt.Errorf("schema %d, this program knows %d", m.Schema, Schema)
	}
	if err := CheckWord(m.Flavour); err != nil {
		return fmt.Errorf("flavour %w", err)
	}
	if err := CheckWord(m.ID); err != nil {
		return fmt.Errorf("id %w", err)
	}
	if m.SourceDateEpoch < 0 || m.SourceDateEpoch > 1<<33-1 {
		return fmt.Errorf("source_date_epoch %d is outside what tar can write", m.SourceDateEpoch)
	}
	if m.Tag == "" && m.Version == "" {
		return nil
	}
	v, err := ParseVersion(m.Tag)
	if err != nil {
		return err
	}
	if v != m.Version {
		return fmt.Errorf("version %q is not that of tag %q", m.Version, m.Tag)
	}
	return nil
}

func (m *Manifest) checkLists() error {
	for i, c := range m.Components {
		if err := CheckComponent(c); err != nil {
			return err
		}
		if i > 0 && m.Components[i-1].Name >= c.Name {
			return fmt.Errorf("component %s is out of order or there twice", c.Name)
		}
	}
	for i, verb := range m.FrontDoor {
		if err := CheckWord(verb); err != nil {
			return fmt.Errorf("front-door verb %w", err)
		}
		if slices.Contains(m.FrontDoor[:i], verb) {
			return fmt.Errorf("front-door verb %s is there twice", verb)
		}
	}
	if len(m.FrontDoor) > 0 && m.EntryPoints[FrontDoorEntry] == "" {
		return fmt.Errorf("front-door verbs need an entry point %q", FrontDoorEntry)
	}
	for _, r := range m.Requires {
		if err := CheckRequirement(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) checkFixes() error {
	for i, f := range m.Fixes {
		if err := CheckFix(f); err != nil {
			return err
		}
		if i > 0 && m.Fixes[i-1].ID >= f.ID {
			return fmt.Errorf("fix %s is out of order or there twice", f.ID)
		}
	}
	return nil
}

func (m *Manifest) checkLinkage() error {
	if m.Machine != "" && !parameterPattern().MatchString(m.Machine) {
		return fmt.Errorf("machine %q is not a name such as x86_64", m.Machine)
	}
	if m.Glibc != "" && !glibcPattern().MatchString(m.Glibc) {
		return fmt.Errorf("glibc %q is not a version such as 2.38", m.Glibc)
	}
	for i, t := range m.GPUTargets {
		if err := CheckWord(t); err != nil {
			return fmt.Errorf("GPU target %w", err)
		}
		if i > 0 && m.GPUTargets[i-1] >= t {
			return fmt.Errorf("GPU target %s is out of order or there twice", t)
		}
	}
	for i, l := range m.HostLibraries {
		if !libraryPattern().MatchString(l.Name) || len(l.Name) > maxName {
			return fmt.Errorf("library %q is not a name such as libvulkan.so.1", l.Name)
		}
		if i > 0 && m.HostLibraries[i-1].Name >= l.Name {
			return fmt.Errorf("library %s is out of order or there twice", l.Name)
		}
		if m.Lookup(l.NeededBy) == nil {
			return fmt.Errorf("library %s is needed by %q, which is not in the package", l.Name, l.NeededBy)
		}
		for _, dir := range l.Dirs {
			if err := checkText("folder of library "+l.Name, dir); err != nil {
				return err
			}
			if !path.IsAbs(dir) || path.Clean(dir) != dir || len(dir) > maxPath {
				return fmt.Errorf("folder %q of library %s is not a clean absolute path", dir, l.Name)
			}
		}
	}
	return nil
}

func (m *Manifest) checkFiles() error {
	if len(m.Files) > maxFiles {
		return fmt.Errorf("%d entries, limit %d", len(m.Files), maxFiles)
	}
	dirs := map[string]bool{".": true}
	folded := make(map[string]string, len(m.Files))
	var total int64
	for i := range m.Files {
		f := &m.Files[i]
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		if i > 0 && m.Files[i-1].Path >= f.Path {
			return fmt.Errorf("%q is out of order or there twice", f.Path)
		}
		if !dirs[path.Dir(f.Path)] {
			return fmt.Errorf("%q is in a folder that is not listed", f.Path)
		}
		if err := m.checkFile(f); err != nil {
			return err
		}
		if f.Type == TypeDir {
			dirs[f.Path] = true
		}
		if f.Size > maxBytes || total+f.Size > maxBytes {
			return fmt.Errorf("files of more than %d bytes, limit at %q", int64(maxBytes), f.Path)
		}
		total += f.Size
		if m.Imported {
			continue
		}
		key := fold(f.Path)
		if other, ok := folded[key]; ok {
			return fmt.Errorf("%+q and %+q differ only in case or in how a letter is composed", other, f.Path)
		}
		folded[key] = f.Path
	}
	return nil
}

func (m *Manifest) checkFile(f *File) error {
	content := f.Size != 0 || f.SHA256 != ""
	ok := f.Size >= 0 && (m.Imported || f.MTime == 0)
	switch f.Type {
	case TypeDir:
		ok = ok && f.Target == "" && !content && m.modeOK(f.Mode, 0o755)
	case TypeLink:
		ok = ok && f.Target != "" && !content && f.Mode == 0
	case TypeFile:
		ok = ok && f.Target == "" && digestPattern().MatchString(f.SHA256) && m.modeOK(f.Mode, 0o755, 0o644)
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%q: type %q does not go with mode %04o, size %d, sha256 %q, target %q, mtime_ns %d",
			f.Path, f.Type, uint32(f.Mode), f.Size, f.SHA256, f.Target, f.MTime)
	}
	return nil
}

func (m *Manifest) modeOK(mode Mode, allowed ...Mode) bool {
	if m.Imported {
		return mode <= 0o777
	}
	return slices.Contains(allowed, mode)
}

// fold maps names to one that some file system takes for the same: it ignores
// case and how a character is composed (Unicode's canonical caseless match).
func fold(s string) string {
	return norm.NFD.String(cases.Fold().String(norm.NFD.String(s)))
}

func (m *Manifest) checkEntryPoints() error {
	for _, name := range slices.Sorted(maps.Keys(m.EntryPoints)) {
		if len(name) > maxTag || !componentPattern().MatchString(name) {
			return fmt.Errorf("entry point name %q is not 1 to %d letters, digits, dots, hyphens and underscores", name, maxTag)
		}
		f, err := m.resolve(m.EntryPoints[name])
		if err != nil {
			return fmt.Errorf("entry point %s: %w", name, err)
		}
		if f.Type != TypeFile || f.Mode&0o100 == 0 {
			return fmt.Errorf("entry point %s: %q is not an executable file", name, f.Path)
		}
	}
	return nil
}
