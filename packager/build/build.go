package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// DefaultEpoch is the time stamp of entries when none is given:
// 1980-01-01T00:00:00Z, the first that every archive format can say.
const DefaultEpoch = 315532800

// EngineComponent is the component whose commit gives a package its id.
const EngineComponent = "engine"

// defaultMachine is the machine in the name of a package that has no ELF files.
const defaultMachine = "x86_64"

// Options say what to build.
type Options struct {
	RecipePath string
	Tree       string
	Out        string // folder for the archive; made if it is not there
	Version    string // the tag, such as v2026.44; may be empty
	ID         string // empty: the first 7 digits of component engine's commit
	// SourceDateEpoch is the time stamp of every entry, in seconds since 1970;
	// 0 means DefaultEpoch.
	SourceDateEpoch int64
	// Sources are the folders of the checkouts that the tree was built from, by
	// component.
	Sources map[string]string
	// AllowDirty lets checkouts have changes that no commit holds; the package
	// then says so.
	AllowDirty bool
	// Level is how hard the archive is compressed; "" means the default.
	Level packager.Level
	// Formats are what to write, of [Formats]; none means the archive alone.
	Formats []string
	// NoRun leaves the programs of the package unstarted: it is for another
	// kind of machine.
	NoRun bool
	// Progress is told the bytes of content packed and their total; may be nil.
	Progress func(done, total int64)
}

// Result is a package that was built.
type Result struct {
	Manifest      *packager.Manifest
	Digest        string // "sha256:<64 hex>", the package's identity
	Path          string // of the first of Packages, as are Size, SHA256 and AlreadyThere
	Size          int64  // in bytes
	SHA256        string // 64 hex digits
	InstalledSize int64  // sum of the files' sizes, in bytes
	AlreadyThere  bool   // the same bytes were in Out before
	// Packages are the files that hold the package, in the order of
	// Options.Formats.
	Packages []Package
	// Trials are what the entry points said to --version, by name; none with
	// NoRun.
	Trials []Trial
}

// Build makes the package. Errors about the recipe, the version, the id or
// what the recipe asks of the tree wrap [ErrRecipe]; a package that would not
// work where it is installed wraps [ErrUnfit]; a checkout with changes wraps
// [ErrDirty], a required fix that is not carried [ErrFixMissing]; another archive of the same
// name in Out wraps [ErrDifferent] and fs.ErrExist. After an error Out holds what it held.
func Build(ctx context.Context, o Options) (_ *Result, err error) {
	recipe, err := LoadRecipe(o.RecipePath)
	if err != nil {
		return nil, err
	}
	checkouts, err := pins(ctx, recipe, o)
	if err != nil {
		return nil, err
	}
	m, err := head(recipe, o)
	if err != nil {
		return nil, err
	}
	if m.Fixes, err = fixes(ctx, recipe, checkouts); err != nil {
		return nil, err
	}
	if err := checkFormats(m, o.Formats); err != nil {
		return nil, err
	}
	tree, err := os.OpenRoot(o.Tree)
	if err != nil {
		return nil, fmt.Errorf("open tree: %w", err)
	}
	defer tree.Close()
	if err := checkOut(recipe, o); err != nil {
		return nil, err
	}
	if m.Files, err = collect(ctx, recipe, tree); err != nil {
		return nil, err
	}
	var work *workFolder
	defer func() {
		if work != nil {
			err = errors.Join(err, work.remove())
		}
	}()
	openWork := func() (*workFolder, error) {
		var err error
		if work == nil {
			work, err = newWorkFolder(o.Out)
		}
		return work, err
	}
	c := &content{tree: tree, elsewhere: map[string]place{}}
	if recipe.FixRunpath {
		if m.Files, err = relink(ctx, recipe, m.Files, o.Tree, c, openWork); err != nil {
			return nil, err
		}
	}
	if err := c.hash(ctx, m.Files); err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	if err := audit(ctx, recipe, m, c, o.Tree); err != nil {
		return nil, err
	}
	digest, err := check(recipe, m, o.Tree)
	if err != nil {
		return nil, err
	}
	w, err := openWork()
	if err != nil {
		return nil, err
	}
	var trials []Trial
	out, err := writeOutput(ctx, o.archivePath(m, w), func(w io.Writer) error {
		open := func(f *packager.File) (io.ReadCloser, error) { return c.open(f.Path) }
		return packager.WriteArchive(ctx, w, m, open, packager.ArchiveOptions{Level: o.Level, Progress: o.archiveProgress()})
	}, func(archive io.Reader) (err error) {
		trials, err = tryPackage(ctx, m, archive, w, o.NoRun)
		return err
	})
	if err != nil {
		return nil, err
	}
	packages, err := o.writeFormats(ctx, m, digest, w, out)
	if err != nil {
		return nil, err
	}
	first := packages[0]
	return &Result{
		Manifest: m, Digest: digest, Path: first.Path, Size: first.Size, SHA256: first.SHA256,
		InstalledSize: m.Size(), AlreadyThere: first.AlreadyThere, Packages: packages, Trials: trials,
	}, nil
}

// check returns the digest of a manifest that is valid. Links and colliding
// names come first: they may be why an entry point is not there.
func check(r *Recipe, m *packager.Manifest, tree string) (string, error) {
	files := *m
	files.EntryPoints, files.FrontDoor = nil, nil
	err := files.Validate()
	if err == nil {
		err = packager.Limits{}.Check(m)
	}
	if err == nil {
		if err := checkEntryPoints(r, m); err != nil {
			return "", err
		}
		digest, derr := m.Digest()
		if derr == nil {
			return digest, nil
		}
		err = derr
	}
	// The text is kept, not the kind: a tree that does not fit is no damage.
	text := strings.TrimSuffix(err.Error(), ": "+packager.ErrIntegrity.Error())
	return "", fmt.Errorf("make package %s of tree %s: %s: %w", m.Name(), tree, text, ErrRecipe)
}

// head makes the manifest's part that the recipe and the options decide.
func head(r *Recipe, o Options) (*packager.Manifest, error) {
	m := &packager.Manifest{
		Schema: packager.Schema, Flavour: r.Flavour, ID: o.ID, Tag: o.Version,
		Components: r.Components, EntryPoints: r.EntryPoints, FrontDoor: r.FrontDoor, Requires: r.Requires,
		SourceDateEpoch: o.SourceDateEpoch,
	}
	if m.SourceDateEpoch == 0 {
		m.SourceDateEpoch = DefaultEpoch
	}
	if m.ID == "" {
		m.ID = defaultID(r.Components)
	}
	if m.ID == "" {
		return nil, fmt.Errorf("%s: components: has no %s to take the id from: add it or give an id: %w", r.file, EngineComponent, ErrRecipe)
	}
	if err := packager.CheckWord(m.ID); err != nil {
		return nil, fmt.Errorf("id %w: %w", err, ErrRecipe)
	}
	if m.Tag != "" {
		version, err := packager.ParseVersion(m.Tag)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, ErrRecipe)
		}
		m.Version = version
	}
	return m, nil
}

// checkOut refuses an output folder that the package would take in, by
// whatever links either path leads through.
func checkOut(r *Recipe, o Options) error {
	tree, err := real(o.Tree)
	if err != nil {
		return fmt.Errorf("find tree: %w", err)
	}
	out, err := real(o.Out)
	if err != nil {
		return fmt.Errorf("find output folder: %w", err)
	}
	for _, include := range r.Include {
		rel, err := filepath.Rel(filepath.Join(tree, filepath.FromSlash(include)), out)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return r.wrong("include "+include, fmt.Errorf("takes in the output folder %s: choose another", o.Out))
		}
	}
	return nil
}

// real is the absolute path of a folder without links; what is not there yet
// has none.
func real(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		found, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(found, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", err
		}
		dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest)
	}
}

// checkEntryPoints says with the recipe's line what the manifest's own check
// would say without it.
func checkEntryPoints(r *Recipe, m *packager.Manifest) error {
	for _, name := range slices.Sorted(maps.Keys(r.EntryPoints)) {
		key, p := "entry_points."+name, r.EntryPoints[name]
		f := m.Lookup(p)
		switch {
		case f == nil:
			return r.wrong(key, fmt.Errorf("%q is not among what is included: include it or correct the path", p))
		case f.Type == packager.TypeFile && f.Mode&0o100 == 0:
			return r.wrong(key, fmt.Errorf("%q is not executable: chmod +x it", p))
		case f.Type == packager.TypeDir:
			return r.wrong(key, fmt.Errorf("%q is a folder: name the program", p))
		}
	}
	return nil
}
