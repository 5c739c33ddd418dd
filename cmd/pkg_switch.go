package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
)

const defaultWatch = time.Minute

type pkgSwitchOptions struct {
	restart, dryRun, verify bool
	watch                   time.Duration
}

func newPkgSwitchCommand(a *app) *cobra.Command {
	var opts pkgSwitchOptions
	c := &cobra.Command{
		Use:   "switch [UNIT] ID",
		Short: "Let a service use another package from its next start on",
		Long: `Let a service use another package from its next start on: writes the drop-in
zz-1bit.conf, reloads systemd and reads back what was loaded. Nothing is restarted
unless --restart says so; until then "1bit pkg status" says restart pending.

A setting elsewhere that would win over the drop-in is refused with file and line.
With --restart the service is restarted, must answer a real completion, and is watched;
a package that fails is left for the one that served before (exit status 1).

An older version, or one that cannot be compared (b6123 and v0.3.0), is said in a note.`,
		Args: between(1, 2), ValidArgsFunction: a.completeUnitThenPackage,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgSwitch(cmd.Context(), args, opts) },
	}
	f := c.Flags()
	f.BoolVar(&opts.restart, "restart", false, "restart the service, check its answers, go back if it fails")
	f.DurationVar(&opts.watch, "watch", defaultWatch, "how long to watch the service after its restart")
	f.BoolVar(&opts.dryRun, "dry-run", false, "check everything and change nothing")
	f.BoolVar(&opts.verify, "verify", false, "check every byte of the package first")
	return c
}

func (a *app) runPkgSwitch(ctx context.Context, args []string, opts pkgSwitchOptions) error {
	p, err := a.store().Find(ctx, args[len(args)-1])
	if errors.Is(err, store.ErrNotInstalled) {
		return fmt.Errorf("%w (usage: 1bit pkg switch [UNIT] ID)", err)
	}
	if err != nil {
		return err
	}
	h := a.host()
	unit, err := a.unit(ctx, h, args[:len(args)-1])
	if err != nil {
		return err
	}
	if opts.watch < 0 {
		return usagef("--watch is %v: it is a time such as 60s", opts.watch)
	}
	o, err := h.Switch(ctx, unit, p, fleet.SwitchOptions{
		Restart: opts.restart, Watch: opts.watch, DryRun: opts.dryRun, Verify: opts.verify,
	})
	a.noteVersions(ctx, o, p.Manifest)
	return a.showOutcome(o, err, "")
}

func newPkgRestartCommand(a *app) *cobra.Command {
	var watch time.Duration
	c := &cobra.Command{
		Use:   "restart [UNIT]",
		Short: "Restart a service on the package that is armed",
		Long: `Restart a service on the package that is armed, check its answers and watch it. A package
that fails is left for the one that served before (exit status 1).`,
		Args: between(0, 1), ValidArgsFunction: a.completeUnits,
		RunE: func(cmd *cobra.Command, args []string) error {
			h := a.host()
			unit, err := a.unit(cmd.Context(), h, args)
			if err != nil {
				return err
			}
			o, err := h.Restart(cmd.Context(), unit, watch)
			return a.showOutcome(o, err, "")
		},
	}
	c.Flags().DurationVar(&watch, "watch", defaultWatch, "how long to watch the service after its restart")
	return c
}

// unit is the named unit, or the only service of this host.
func (a *app) unit(ctx context.Context, h *fleet.Host, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	return a.onlyUnit(ctx, h)
}
