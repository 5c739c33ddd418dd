package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager/store"
)

func newPkgServiceCommand(a *app) *cobra.Command {
	c := group("service", "Make a service for those who have none")
	c.AddCommand(newPkgServiceNewCommand(a))
	return c
}

type pkgServiceNewOptions struct {
	pkg    string
	dryRun bool
}

func newPkgServiceNewCommand(a *app) *cobra.Command {
	var opts pkgServiceNewOptions
	c := &cobra.Command{
		Use:                   "new NAME [--package ID] -- PROGRAM ARGS…",
		DisableFlagsInUseLine: true,

		Short: "Write a unit that starts a program of a package",
		Long: `Write a unit that starts a program of a package: 1bit, llama-server, or another entry point
of it (see 1bit pkg inspect). Program and libraries come from the package over variables, so
that switch and rollback can move the service. Arguments reach the program as they are given
here. The service starts in its user's home folder (as root in /): write whole paths. A path
that is there from this folder alone is refused.

Nothing is started, enabled or loaded: the commands for that are printed. --package may be
left out where one package is installed.`,
		Example: "  1bit pkg service new 1bit-canonical -- 1bit serve -m ~/models/Qwen3-4B-Q4_K_M.gguf --device hrx --parallel 4",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usagef("usage is %s: one name, then \"--\", then the program and its arguments", cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: a.completeEntryPoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runPkgServiceNew(cmd.Context(), args[0], args[1], args[2:], opts)
		},
	}
	c.Flags().StringVar(&opts.pkg, "package", "", "the package that it starts from")
	c.Flags().BoolVar(&opts.dryRun, "dry-run", false, "print the unit and write nothing")
	_ = c.RegisterFlagCompletionFunc("package", a.completePackages)
	return c
}

func (a *app) runPkgServiceNew(ctx context.Context, name, program string, args []string, opts pkgServiceNewOptions) error {
	for _, arg := range args {
		path := arg
		if strings.HasPrefix(arg, "-") {
			_, path, _ = strings.Cut(arg, "=") // --model=PATH
		}
		if path == "" || filepath.IsAbs(path) || !strings.ContainsAny(path, "/.") {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			return usagef("%s is a path from this folder, and the service starts in another: write the whole path", path)
		}
	}
	p, err := a.onlyPackage(ctx, opts.pkg)
	if err != nil {
		return err
	}
	made, err := a.host().NewService(ctx, fleet.NewService{Name: name, Package: p, Program: program, Args: args, DryRun: opts.dryRun})
	if err != nil {
		return err
	}
	return a.show(made, func(w io.Writer) error {
		if made.DryRun {
			fmt.Fprint(w, made.Text)
			return nil
		}
		fmt.Fprintf(w, "%s is written and not started; it is yours from now on. To load, start and keep it:\n", made.Path)
		for _, command := range made.Next {
			fmt.Fprintf(w, "  %s\n", command)
		}
		for _, note := range made.Notes {
			fmt.Fprintf(w, "note: %s\n", ui.Clean(note))
		}
		return nil
	})
}

// onlyPackage is the named package, or the only one that is installed.
func (a *app) onlyPackage(ctx context.Context, id string) (*store.Package, error) {
	if id != "" {
		return a.store().Find(ctx, id)
	}
	all, err := a.store().List(ctx)
	if err != nil {
		return nil, err
	}
	switch len(all) {
	case 0:
		return nil, usagef("no package is installed: 1bit pkg install FILE, then make the service")
	case 1:
		return all[0], nil
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return nil, usagef("%d packages are installed, name one with --package: %s", len(all), join(names))
}

// completeEntryPoints knows the programs of the packages, after the name of the new unit.
func (a *app) completeEntryPoints(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var names []string
	if len(args) == 1 && a.setUp(cmd, nil) == nil {
		if packages, err := a.store().List(ctx); err == nil {
			seen := map[string]bool{}
			for _, p := range packages {
				for name := range p.Manifest.EntryPoints {
					if !seen[name] {
						seen[name] = true
						names = append(names, name)
					}
				}
			}
		}
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveDefault // arguments are often paths
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
