package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager/store"
)

const (
	defaultKeep     = 2
	defaultKeepDays = 1
)

type pkgGCOptions struct {
	keep, keepDays int
	dryRun         bool
}

func newPkgGCCommand(a *app) *cobra.Command {
	var opts pkgGCOptions
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove the packages that nothing needs",
		Long: `Remove every package that nothing needs, and say of each other one why it stays. A
package stays that a service has armed, runs, or would roll back to, that a unit file
names, or that a process uses; that is one of the last --keep of its flavour, or was
installed in the last --keep-days days; that was imported (1bit pkg remove takes it) or
installed by dpkg, rpm or pacman. Where files share blocks, less space becomes free than
the sizes add up to.

Of the packages in /opt/1bit only root can tell that no process uses them.`,
		Args: between(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPkgGC(cmd.Context(), opts) },
	}
	f := c.Flags()
	f.IntVar(&opts.keep, "keep", defaultKeep, "how many packages of each flavour stay, those installed last")
	f.IntVar(&opts.keepDays, "keep-days", defaultKeepDays, "how many days a package stays after it was installed")
	f.BoolVar(&opts.dryRun, "dry-run", false, "remove nothing, say what would be removed")
	return c
}

// gcPackage is a package as "gc" prints it.
type gcPackage struct {
	Name    string   `json:"name"`
	ID      string   `json:"id"`
	Digest  string   `json:"digest"`
	Path    string   `json:"path"`
	Size    int64    `json:"size"`
	Action  string   `json:"action"` // kept, removed or would_remove
	Reasons []string `json:"reasons"`
}

func (a *app) runPkgGC(ctx context.Context, opts pkgGCOptions) error {
	if opts.keep < 0 || opts.keepDays < 0 {
		return usagef("--keep and --keep-days are numbers from 0")
	}
	decisions, failed := a.store().GC(ctx, store.GCOptions{
		Keep: opts.keep, KeepDays: opts.keepDays, Now: a.now(), DryRun: opts.dryRun,
	}, a.usage)
	doc := struct {
		Packages []gcPackage `json:"packages"`
		Freed    int64       `json:"freed"`
		DryRun   bool        `json:"dry_run"`
	}{Packages: []gcPackage{}, DryRun: opts.dryRun}
	rows := [][]string{{"PACKAGE", "SIZE", "", "WHY"}}
	for _, d := range decisions {
		p := gcPackage{
			Name: d.Package.Name, ID: d.Package.Manifest.ID, Digest: d.Package.Digest, Path: d.Package.Path,
			Size: d.Package.Size, Action: "kept", Reasons: append([]string{}, d.Reasons...),
		}
		why := join(p.Reasons)
		if len(p.Reasons) == 0 {
			doc.Freed += p.Size
			p.Action, why = "removed", "nothing needs it"
			if opts.dryRun {
				p.Action = "would_remove"
			}
		}
		doc.Packages = append(doc.Packages, p)
		rows = append(rows, []string{p.Name, ui.Size(p.Size), gcAction(p.Action), ui.Clean(why)})
	}
	if failed != nil {
		if doc.Freed > 0 {
			return fmt.Errorf("%w; %s were removed before it", failed, ui.Size(doc.Freed))
		}
		return failed
	}
	return a.show(doc, func(w io.Writer) error {
		if len(decisions) == 0 {
			_, err := fmt.Fprintf(w, "no package is installed in %s\n", a.config.DataHome)
			return err
		}
		if err := ui.Table(w, rows); err != nil {
			return err
		}
		how := "freed"
		if opts.dryRun {
			how = "would free"
		}
		_, err := fmt.Fprintf(w, "%s %s\n", how, ui.Size(doc.Freed))
		return err
	})
}

// gcAction is what text says of an action.
func gcAction(action string) string {
	switch action {
	case "removed":
		return "removed"
	case "would_remove":
		return "would go"
	}
	return "stays"
}

// usage asks the services once what they need.
func (a *app) usage(ctx context.Context) (func(*store.Package) []string, error) {
	u, err := a.host().Usage(ctx)
	if err != nil {
		return nil, err
	}
	return u.Of, nil
}
