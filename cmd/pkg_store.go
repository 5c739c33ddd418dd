package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

func newPkgInstallCommand(a *app) *cobra.Command {
	var limits limitFlags
	c := &cobra.Command{
		Use:   "install FILE",
		Short: "Install a package beside the others",
		Long: `Install a package archive (.tar.zst; a .deb, .rpm or .pkg.tar.zst is for its own manager):
every file is checked against the manifest while it is unpacked into a staging folder,
synced, and the whole gets its name in one rename. A package that is there already is
left as it is; nothing that runs is touched. What the package needs and this host lacks
is a warning.

An archive that asks for more than the limits below is refused before it is unpacked, or
as soon as it shows; each limit can be raised.`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runPkgInstall(cmd.Context(), args[0], limits.Limits)
		},
	}
	limits.addFlags(c.Flags())
	return c
}

func (a *app) runPkgInstall(ctx context.Context, file string, limits packager.Limits) error {
	if err := refuseNative(file); err != nil {
		return err
	}
	bar := a.progress("install")
	defer bar.Close()
	st := a.store()
	st.Limits = limits
	p, already, err := st.Install(ctx, file, bar.Bytes)
	if err != nil {
		return err
	}
	bar.Close()
	how := "is installed"
	switch {
	case already && p.State == store.StateOK:
		how = "was installed before and looks as it should"
	case already:
		return fmt.Errorf("%w: %s is installed and %s: %s; look with 1bit pkg verify %s, then remove it and install it again",
			packager.ErrIntegrity, p.Name, p.State, p.Detail, p.Name)
	}
	return a.showInstalled(p, say("%s %s in %s (%s)", p.Name, how, p.Path, p.Digest))
}

func newPkgImportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import DIR",
		Short: "Take in a package directory that has no manifest",
		Long: `Take in a directory 1bit-FLAVOUR-ID that an older installer made. Its bytes stay
untouched; the manifest is computed and kept with the state, and its pins are declared,
not proven.`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.store().Import(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.show(listed(p), say("%s is taken in as it is, in %s (%s)", p.Name, p.Path, p.Digest))
		},
	}
}

// listedPackage is a package as "list" prints it.
type listedPackage struct {
	ID          string   `json:"id"`
	Flavour     string   `json:"flavour"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Tag         string   `json:"tag"`
	Dirty       bool     `json:"dirty"` // of a checkout with changes that no commit holds
	Digest      string   `json:"digest"`
	Path        string   `json:"path"`
	Size        int64    `json:"size"`
	InstalledAt string   `json:"installed_at"`
	Imported    bool     `json:"imported"`
	InstalledBy string   `json:"installed_by"`
	State       string   `json:"state"`
	UsedBy      []string `json:"used_by"`
	// Fix is there with --fix alone.
	Fix *listedFix `json:"fix,omitempty"`
}

func listed(p *store.Package) listedPackage {
	dirty := slices.ContainsFunc(p.Manifest.Components, func(c packager.Component) bool { return c.Dirty })
	return listedPackage{
		ID: p.Manifest.ID, Flavour: p.Manifest.Flavour, Name: p.Name, Version: p.Manifest.Version, Tag: p.Manifest.Tag, Dirty: dirty,
		Digest: p.Digest, Path: p.Path, Size: p.Size, Imported: p.Imported, State: p.State,
		InstalledAt: p.InstalledAt.UTC().Format("2006-01-02T15:04:05Z"), InstalledBy: p.InstalledBy, UsedBy: []string{},
	}
}

// installed says when, and by whom and where if that is not the usual.
func (a *app) installed(p *store.Package) string {
	text := p.InstalledAt.Format("2006-01-02 15:04")
	if p.InstalledBy != store.InstalledByUs {
		text += " by " + ui.Clean(p.InstalledBy)
	}
	if dir := filepath.Dir(p.Path); dir != a.store().Dir {
		text += " in " + dir
	}
	return text
}

func newPkgInspectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "inspect FILE|ID|DIR", Short: "Show what a package says of itself", Args: between(1, 1),
		Long: `Show the manifest of an archive, or of an installed package named by its id or folder: its
version and digest, the commits it was made of, entry points, fixes, the machine, GPU
targets and glibc it is for, and what it needs of its host. -o json has the files too.`,
		ValidArgsFunction: a.completePackages,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPkgInspect(cmd.Context(), args[0]) },
	}
}

func (a *app) runPkgInspect(ctx context.Context, what string) error {
	m, digest, err := a.manifest(ctx, what)
	if err != nil {
		return err
	}
	doc := struct {
		Name     string             `json:"name"`
		Digest   string             `json:"digest"`
		Manifest *packager.Manifest `json:"manifest"`
	}{m.Name(), digest, m}
	return a.show(doc, func(w io.Writer) error { return printManifest(w, m, digest) })
}

// manifest reads what an archive file or an installed package, by its name or folder, says of itself.
func (a *app) manifest(ctx context.Context, what string) (*packager.Manifest, string, error) {
	info, err := os.Stat(what)
	folder := err == nil && info.IsDir()
	switch {
	case folder:
		if what, err = filepath.Abs(what); err != nil {
			return nil, "", err
		}
	case isFile(what):
		if err := refuseNative(what); err != nil {
			return nil, "", err
		}
		m, err := packager.ReadManifest(ctx, what, packager.NoLimits())
		if err != nil {
			return nil, "", err
		}
		digest, err := m.Digest()
		return m, digest, err
	}
	p, err := a.store().Find(ctx, what)
	switch {
	case folder && errors.Is(err, store.ErrNotInstalled):
		return nil, "", usagef("%s is a folder and no installed package: name an archive, or one that 1bit pkg list shows", what)
	case err != nil:
		return nil, "", err
	}
	return p.Manifest, p.Digest, nil
}

func newPkgVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify [ID…]", Short: "Check every byte of installed packages", Args: between(0, -1),
		ValidArgsFunction: a.completePackages,
		Long: `Check every file of the named packages, or of all, against the manifest: digest, size,
mode, link target, and files that do not belong there; then look on this host for what it
requires and for the libraries that its programs need. Ends with 5 if anything is not
right or missing.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgVerify(cmd.Context(), args) },
	}
}

func (a *app) runPkgVerify(ctx context.Context, ids []string) error {
	packages, err := a.find(ctx, ids)
	if err != nil {
		return err
	}
	doc := struct {
		Packages []*store.Verification `json:"packages"`
	}{Packages: []*store.Verification{}}
	ok := true
	for _, p := range packages {
		bar := a.progress("verify " + p.Name)
		v, err := a.store().Verify(ctx, p, bar.Bytes)
		bar.Close()
		if err != nil {
			return err
		}
		for _, what := range a.host().Unmet(p.Manifest) {
			v.Problems, v.OK = append(v.Problems, store.Problem{Path: ".", What: what, Host: true}), false
		}
		ok = ok && v.OK
		doc.Packages = append(doc.Packages, v)
	}
	err = a.show(doc, func(w io.Writer) error {
		if len(packages) == 0 {
			fmt.Fprintf(w, "no package is installed in %s\n", a.config.DataHome)
		}
		for i, v := range doc.Packages {
			printVerification(w, packages[i].Name, v)
		}
		return nil
	})
	if err == nil && !ok {
		return statusError(exitIntegrity)
	}
	return err
}

func newPkgRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID…", Short: "Remove packages that nothing needs", Args: between(1, -1),
		ValidArgsFunction: a.completePackages,
		Long: `Remove packages. One that a service has armed, runs, or would roll back to (or, with --undo,
return to), that a unit file names, or that a process still uses, is refused with the reason.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgRemove(cmd.Context(), args) },
	}
}

func (a *app) runPkgRemove(ctx context.Context, ids []string) error {
	packages, err := a.find(ctx, ids)
	if err != nil {
		return err
	}
	// All or nothing, as far as can be seen before the first one goes.
	for _, p := range packages {
		reasons, err := a.host().UsedBy(ctx, p)
		if err != nil {
			return err
		}
		if len(reasons) > 0 {
			return fmt.Errorf("remove %s: %w: %s; nothing was removed", p.Name, store.ErrInUse, strings.Join(reasons, "; "))
		}
	}
	removed := []string{}
	for _, p := range packages {
		if err := a.store().Remove(ctx, p, a.host().UsedBy); err != nil {
			if len(removed) > 0 {
				return fmt.Errorf("%w; removed before it: %s", err, join(removed))
			}
			return err
		}
		removed = append(removed, p.Name)
	}
	doc := struct {
		Removed []string `json:"removed"`
	}{removed}
	return a.show(doc, say("removed %s", join(removed)))
}

// find resolves the names, all of them before anything is done; no names mean every package.
func (a *app) find(ctx context.Context, ids []string) ([]*store.Package, error) {
	if len(ids) == 0 {
		return a.store().List(ctx)
	}
	var packages []*store.Package
	for _, id := range ids {
		p, err := a.store().Find(ctx, id)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(packages, func(q *store.Package) bool { return q.Path == p.Path }) {
			packages = append(packages, p)
		}
	}
	return packages, nil
}
