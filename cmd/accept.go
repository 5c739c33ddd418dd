package cmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

type acceptRunOptions struct {
	pkg, evidence, model string
}

func newAcceptRunCommand(a *app) *cobra.Command {
	var opts acceptRunOptions
	c := &cobra.Command{
		Use:   "run PLAN --package ID [--evidence DIR]",
		Short: "Soak a package by a plan and give the verdict",
		Long: `Soak an installed package by a plan: one server of the package under concurrent, unique
requests beside a busy neighbour, watched on every face of a fault. The plan is hashed
before the first request; everything a reader needs to audit the verdict is written into
the evidence folder. Ends with 0 for pass, 8 for fail, 6 for no verdict.`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAcceptRun(cmd.Context(), args[0], opts) },
	}
	c.Flags().StringVar(&opts.pkg, "package", "", "package to soak (required)")
	c.Flags().StringVar(&opts.evidence, "evidence", "", "evidence folder, new or empty (default below the state folder)")
	_ = c.RegisterFlagCompletionFunc("package", a.completePackages)
	return c
}

func (a *app) runAcceptRun(ctx context.Context, path string, opts acceptRunOptions) error {
	if opts.pkg == "" {
		return usagef("--package is missing: name the installed package to soak")
	}
	plan, err := acceptance.LoadPlan(path)
	if err != nil {
		return err
	}
	p, err := a.store().Find(ctx, opts.pkg)
	if err != nil {
		return err
	}
	if err := a.mustBeWhole(ctx, p); err != nil {
		return err
	}
	for _, note := range plan.Notes() {
		fmt.Fprintf(a.stderr, "note: %s\n", note)
	}
	dir := opts.evidence
	if dir == "" {
		dir = filepath.Join(a.config.StateHome, "evidence", p.Name+"-"+a.now().UTC().Format("20060102T150405Z"))
	}
	bar := a.progress("soak " + p.Name)
	defer bar.Close()
	v, err := acceptance.Run(ctx, acceptance.RunOptions{
		Plan: plan, Package: p, Evidence: dir, Log: a.log, Now: a.now, Env: a.environ, Runner: "1bit " + Version,
		Progress: func(s acceptance.Progress) { bar.Update(s.Done, s.Total, s.String()) },
	})
	bar.Close()
	if err != nil {
		return err
	}
	return a.showVerdict(v, dir)
}

// mustBeWhole checks every byte of a package: a verdict names its digest.
func (a *app) mustBeWhole(ctx context.Context, p *store.Package) error {
	bar := a.progress("verify " + p.Name)
	defer bar.Close()
	v, err := a.store().Verify(ctx, p, bar.Bytes)
	if err != nil {
		return err
	}
	if !v.OK {
		return fmt.Errorf("%w: %s: %s: %s (1bit pkg verify lists all)", packager.ErrIntegrity, p.Name, v.Problems[0].Path, v.Problems[0].What)
	}
	return nil
}

func newAcceptVerdictCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verdict DIR", Short: "Judge an evidence folder again", Args: between(1, 1),
		Long: `Compute the verdict of an evidence folder again, from its plan and ledger alone. A ledger
that was edited or cut is noticed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := acceptance.JudgeDir(args[0])
			if err != nil {
				return err
			}
			return a.showVerdict(v, args[0])
		},
	}
}

func (a *app) showVerdict(v *acceptance.Verdict, dir string) error {
	err := a.show(v, func(w io.Writer) error { return printVerdict(w, v, dir) })
	if err != nil {
		return err
	}
	switch v.Verdict {
	case acceptance.Pass:
		return nil
	case acceptance.Fail:
		return statusError(exitVerdictBad)
	}
	return statusError(exitNoVerdict)
}
