package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

type pkgListOptions struct{ fix string }

// listedFix is what a package says of the fix that was asked for. Carried is null where that is unknown.
type listedFix struct {
	Carried *bool  `json:"carried"`
	How     string `json:"how"`
}

func newPkgListCommand(a *app) *cobra.Command {
	var opts pkgListOptions
	c := &cobra.Command{
		Use: "list [--fix ID]", Short: "List the installed packages", Args: between(0, 0),
		Long: `List the installed packages, a user's own and those of /opt/1bit, with their state: ok,
touched (something about the folder differs from what was installed: 1bit pkg verify
tells what) or broken. "(dirty)" after the version: a checkout that it was made of had
changes that no commit holds.

With --fix only those that carry a fix, and how that was established when they were built;
those of which it is unknown are listed as such. Unknown is never yes.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPkgList(cmd.Context(), opts) },
	}
	c.Flags().StringVar(&opts.fix, "fix", "", "only packages that carry this fix, such as engine#123")
	_ = c.RegisterFlagCompletionFunc("fix", a.completeFixes)
	return c
}

func (a *app) runPkgList(ctx context.Context, opts pkgListOptions) error {
	packages, err := a.store().List(ctx)
	if err != nil {
		return err
	}
	usage, err := a.host().Usage(ctx)
	if err != nil {
		return err
	}
	doc := struct {
		Packages []listedPackage `json:"packages"`
	}{Packages: []listedPackage{}}
	known := knownFixes(packages)
	rows := [][]string{{"PACKAGE", "VERSION", "STATE", "SIZE", "INSTALLED"}}
	if opts.fix != "" {
		rows[0] = append(rows[0], "FIX", "HOW")
	}
	rows[0] = append(rows[0], "USED BY")
	for _, p := range packages {
		l := listed(p)
		l.UsedBy = append(l.UsedBy, usage.Of(p)...)
		v := strings.TrimSpace(or(l.Version, l.Tag) + dirtyNote(l.Dirty))
		row := []string{l.Name, v, l.State, ui.Size(l.Size), a.installed(p)}
		if opts.fix != "" {
			l.Fix = fixOf(p.Manifest, opts.fix)
			if !slices.Contains(known, opts.fix) || l.Fix.Carried != nil && !*l.Fix.Carried {
				continue
			}
			row = append(row, carriedWord(l.Fix.Carried), l.Fix.How)
		}
		doc.Packages = append(doc.Packages, l)
		rows = append(rows, append(row, usedByText(l.UsedBy)))
	}
	return a.show(doc, func(w io.Writer) error {
		var err error
		switch {
		case len(packages) == 0:
			_, err = fmt.Fprintf(w, "no package is installed in %s\n", a.config.DataHome)
		case opts.fix != "" && !slices.Contains(known, opts.fix):
			_, err = fmt.Fprintf(w, "no installed package knows of a fix %s; they know of %s\n", ui.Clean(opts.fix), or(join(known), "none"))
		case len(doc.Packages) == 0:
			_, err = fmt.Fprintf(w, "no installed package carries %s\n", ui.Clean(opts.fix))
		default:
			err = ui.Table(w, rows)
		}
		return err
	})
}

// usedByText names the first uses of a package; -o json has all.
func usedByText(uses []string) string {
	const most = 2
	if len(uses) > most+1 {
		return fmt.Sprintf("%s and %d more", join(uses[:most]), len(uses)-most)
	}
	return or(join(uses), "-")
}

// fixOf is what a package says of a fix; one that says nothing leaves it unknown.
func fixOf(m *packager.Manifest, id string) *listedFix {
	for _, f := range m.Fixes {
		if f.ID == id {
			return &listedFix{f.Carried, f.How}
		}
	}
	return &listedFix{How: "the package says nothing of it"}
}

// knownFixes are the ids of all fixes that the packages speak of, sorted.
func knownFixes(packages []*store.Package) []string {
	var ids []string
	for _, p := range packages {
		for _, f := range p.Manifest.Fixes {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
