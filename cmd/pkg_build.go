package cmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/build"
)

type pkgBuildOptions struct {
	recipe, tree, out, version, id, level string
	noRun, allowDirty                     bool
	sources, formats                      []string
}

func newPkgBuildCommand(a *app) *cobra.Command {
	var opts pkgBuildOptions
	c := &cobra.Command{
		Use:   "build --recipe FILE --tree DIR --out DIR [--version TAG] [--id ID] [--format LIST] [--source NAME=DIR]…",
		Short: "Make a package of a build tree",
		Long: `Make a package of a build tree: the files that the recipe names, with a manifest that
holds the digest of every one, as a tar.zst archive. The same tree and recipe give the
same bytes; SOURCE_DATE_EPOCH sets the time that all files carry.

The needs of every program and library must be met inside the package or be asked of the
host by the recipe; "fix_runpath: true" in the recipe brings in the libraries of the build
tree and makes the files find each other by $ORIGIN (needs the program patchelf). The
package is then unpacked elsewhere and its entry points are started with --version and an
empty environment: one that does not start fails the build.

With --source NAME=DIR the commit of a component is that of the git checkout it was built
from, and the recipe's registry of fixes is asked of its history: whether each is carried,
by ancestry or by the same patch, and was not reverted since. Without it a commit is what
the recipe declares. A checkout with changes that no commit holds is refused, as is a
package without a fix that the recipe requires.

With --format deb,rpm,archlinux it also is a package for dpkg, rpm or pacman (needs
--version), which goes to /opt/1bit beside others and cannot be removed while a process
or a unit uses it.

Prints the path of every file, and on standard error what the entry points answered, if
none of them said a commit, the fixes that are not carried or unknown, and what the host
must have that no dependency of a native package says; --quiet leaves these out.`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPkgBuild(cmd.Context(), opts) },
	}
	f := c.Flags()
	f.StringVar(&opts.recipe, "recipe", "", "recipe, a YAML file (required)")
	f.StringVar(&opts.tree, "tree", "", "build tree (required)")
	f.StringVar(&opts.out, "out", "", "folder for the archive (required)")
	f.StringVar(&opts.version, "version", "", "release tag, such as v2026.44")
	f.StringVar(&opts.level, "level", string(packager.LevelDefault), "how hard to compress: fast, default or best (best needs the program zstd)")
	f.StringArrayVar(&opts.formats, "format", []string{build.FormatArchive}, "what to write, of "+strings.Join(build.Formats(), ", ")+" (with commas in between, or repeat it)")
	f.StringVar(&opts.id, "id", "", "id (default: the first seven digits of the engine's commit)")
	f.StringArrayVar(&opts.sources, "source", nil, "git checkout that a component was built from, as NAME=DIR (repeat for more)")
	f.BoolVar(&opts.allowDirty, "allow-dirty", false, "let checkouts have changes that no commit holds; the package says so")
	f.BoolVar(&opts.noRun, "no-run", false, "do not start the programs: the package is for another kind of machine")
	return c
}

type builtPackage struct {
	Format string `json:"format"`
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type buildDocument struct {
	ID            string            `json:"id"`
	Flavour       string            `json:"flavour"`
	Version       string            `json:"version"`
	Digest        string            `json:"digest"`
	InstalledSize int64             `json:"installed_size"`
	Files         int               `json:"files"`
	Pins          map[string]string `json:"pins"`
	Fixes         []fixDocument     `json:"fixes"`
	Packages      []builtPackage    `json:"packages"`
	Trials        []trialDocument   `json:"trials"`
}

func (a *app) runPkgBuild(ctx context.Context, opts pkgBuildOptions) error {
	for _, flag := range []struct{ name, value string }{{"recipe", opts.recipe}, {"tree", opts.tree}, {"out", opts.out}} {
		if flag.value == "" {
			return usagef("--%s is missing: see 1bit pkg build --help", flag.name)
		}
	}
	if err := packager.CheckLevel(packager.Level(opts.level)); err != nil {
		return usagef("--level: %w", err)
	}
	formats, err := build.ParseFormats(strings.Join(opts.formats, ","))
	if err != nil {
		return usagef("--format: %w", err)
	}
	sources, err := parseSources(opts.sources)
	if err != nil {
		return err
	}
	var epoch int64
	if s := a.getenv("SOURCE_DATE_EPOCH"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return usagef("SOURCE_DATE_EPOCH is %q: it is a number of seconds since 1970", s)
		}
		epoch = n
	}
	bar := a.progress("build")
	defer bar.Close()
	r, err := build.Build(ctx, build.Options{
		RecipePath: opts.recipe, Tree: opts.tree, Out: opts.out, Version: opts.version, ID: opts.id,
		Sources: sources, AllowDirty: opts.allowDirty,
		Level:           packager.Level(opts.level),
		SourceDateEpoch: epoch, Progress: bar.Bytes, Formats: formats, NoRun: opts.noRun,
	})
	if err != nil {
		return err
	}
	bar.Close()
	doc := buildDocument{
		ID: r.Manifest.ID, Flavour: r.Manifest.Flavour, Version: r.Manifest.Version, Digest: r.Digest,
		InstalledSize: r.InstalledSize, Files: regularFiles(r.Manifest), Pins: map[string]string{}, Fixes: fixDocuments(r.Manifest.Fixes),
		Trials: trialDocuments(r.Trials),
	}
	for _, p := range r.Packages {
		doc.Packages = append(doc.Packages, builtPackage{p.Format, p.Path, p.Size, p.SHA256})
	}
	for _, c := range r.Manifest.Components {
		doc.Pins[c.Name] = c.Commit
	}
	return a.show(doc, func(w io.Writer) error {
		if !a.flags.quiet {
			sayTrials(a.stderr, r.Trials)
			sayNotes(a.stderr, r)
		}
		for _, p := range r.Packages {
			if _, err := fmt.Fprintln(w, p.Path); err != nil {
				return err
			}
		}
		return nil
	})
}

// regularFiles counts the files of a package; folders and links are none.
func regularFiles(m *packager.Manifest) int {
	n := 0
	for i := range m.Files {
		if m.Files[i].Type == packager.TypeFile {
			n++
		}
	}
	return n
}
