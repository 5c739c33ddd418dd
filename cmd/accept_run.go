package cmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/acceptance/report"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

type acceptRunOptions struct {
	pkg, baseline, evidence string
	detach                  bool
}

func newAcceptRunCommand(a *app) *cobra.Command {
	var opts acceptRunOptions
	c := &cobra.Command{
		Use:   "run PLAN --package ID [--baseline ID] [--evidence DIR] [--detach]",
		Short: "Soak a package by a plan and give the verdict",
		Long: `Soak an installed package by a plan: servers of the package under concurrent, unique
requests beside a busy neighbour, watched on every face of a fault. PLAN is a file or the
name of a plan that comes with this program ("1bit accept plan" lists them). The plan is
hashed before the first request; everything a reader needs to audit the verdict is written
into the evidence folder. Ends with 0 for pass, 8 for fail, 6 for no verdict.

Arms of the role baseline run the package that --baseline names. With --detach the soak
goes on as a systemd unit of its own when you log out: "1bit accept watch DIR" follows it.
What a run that was killed has recorded is kept: "1bit accept resume DIR" goes on.`,
		Args: between(1, 1), ValidArgsFunction: completePlans,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAcceptRun(cmd.Context(), args[0], opts) },
	}
	opts.addFlags(a, c)
	c.Flags().StringVar(&opts.baseline, "baseline", "", "package of the arms of the role baseline, to compare with")
	_ = c.RegisterFlagCompletionFunc("baseline", a.completePackages)
	return c
}

func (opts *acceptRunOptions) addFlags(a *app, c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&opts.pkg, "package", "", "package to soak (required)")
	f.StringVar(&opts.evidence, "evidence", "", "evidence folder, new or empty (default below the state folder)")
	f.BoolVar(&opts.detach, "detach", false, "run it as a transient systemd unit and return")
	_ = c.RegisterFlagCompletionFunc("package", a.completePackages)
}

func (a *app) runAcceptRun(ctx context.Context, path string, opts acceptRunOptions) error {
	if opts.pkg == "" {
		return usagef("--package is missing: name the installed package to soak")
	}
	plan, err := acceptance.OpenPlan(path)
	if err != nil {
		return err
	}
	p, err := a.soaked(ctx, opts.pkg)
	if err != nil {
		return err
	}
	var baseline *store.Package
	if opts.baseline != "" {
		if baseline, err = a.soaked(ctx, opts.baseline); err != nil {
			return err
		}
	}
	for _, note := range plan.Notes() {
		fmt.Fprintf(a.stderr, "note: %s\n", note)
	}
	dir := opts.evidence
	if dir == "" {
		dir = filepath.Join(a.config.StateHome, "evidence", p.Name+"-"+a.now().UTC().Format("20060102T150405Z"))
	}
	o, done := a.runOptions(ctx, dir, "soak "+p.Name)
	defer done()
	o.Plan, o.Package, o.Baseline = plan, p, baseline
	if opts.detach {
		if err := acceptance.Check(ctx, o); err != nil {
			return err
		}
		done()
		return a.detachRun(ctx, path, dir, p, baseline)
	}
	v, err := acceptance.Run(ctx, o)
	done()
	if err != nil {
		return err
	}
	return a.showNewVerdict(v, dir)
}

// runOptions are what a run and its resumption have in common. done ends what is shown of it, and may be called twice.
func (a *app) runOptions(ctx context.Context, dir, what string) (o acceptance.RunOptions, done func()) {
	bar := a.progress(what)
	bus := a.bus(ctx)
	o = acceptance.RunOptions{
		Evidence: dir, Log: a.log, Now: a.now, Env: a.environ, Runner: "1bit " + Version, Find: a.soaked, Bus: bus,
		Progress: func(s acceptance.Progress) { bar.Update(s.Done, s.Total, s.String()) },
	}
	return o, func() {
		bar.Close()
		if bus != nil {
			bus.Close()
			bus = nil
		}
	}
}

// bus is the connection to the scope's manager, nil where there is none: servers run in process groups then.
func (a *app) bus(ctx context.Context) *systemd.Manager {
	m, err := a.host().Connect(ctx)
	if err != nil {
		a.log.Info("no systemd manager", "error", err)
		return nil
	}
	return m
}

// soaked finds an installed package and checks every byte of it: a verdict names its digest.
func (a *app) soaked(ctx context.Context, id string) (*store.Package, error) {
	p, err := a.store().Find(ctx, id)
	if err != nil {
		return nil, err
	}
	bar := a.progress("verify " + p.Name)
	defer bar.Close()
	v, err := a.store().Verify(ctx, p, bar.Bytes)
	if err != nil {
		return nil, err
	}
	if !v.OK {
		return nil, fmt.Errorf("%w: %s: %s: %s (1bit pkg verify lists all)", packager.ErrIntegrity, p.Name, v.Problems[0].Path, v.Problems[0].What)
	}
	return p, nil
}

// showNewVerdict puts the reports beside the evidence of a run that has just ended, and shows its verdict.
func (a *app) showNewVerdict(v *acceptance.Verdict, dir string) error {
	if _, _, err := report.WriteFiles(dir); err != nil {
		fmt.Fprintf(a.stderr, "note: no report was written: %v\n", err)
	}
	return a.showVerdict(v, dir)
}
