package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

type pkgSwitchOptions struct {
	restart, dryRun, verify bool
	watch                   time.Duration
	proposal                string
}

func newPkgSwitchCommand(a *app) *cobra.Command {
	var opts pkgSwitchOptions
	c := &cobra.Command{
		Use:   "switch [UNIT] [ID]",
		Short: "Let a service use another package from its next start on",
		Long: `Let a service use another package from its next start on: writes the drop-in
zz-1bit.conf, reloads systemd and reads back what was loaded. Nothing is restarted
unless --restart says so; until then "1bit pkg status" says restart pending.

Without ID it takes what was proposed for the service ("1bit pkg propose"), with
--proposal FILE what somebody under another account proposed in a file.

A setting elsewhere that would win over the drop-in is refused with file and line, and so
is a service that is held. With --restart the service is restarted, must answer a real
completion, and is watched; a package that fails is left for the one that served before
(exit status 1).

Where the policy is to ask, everything is checked first, and what the owner should know
stands above the question: lines that the drop-in wins over, edits of other units that the
reload loads too, an older version, or one that cannot be compared (b6123 and v0.3.0).`,
		Args: between(0, 2), ValidArgsFunction: a.completeUnitThenPackage,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgSwitch(cmd.Context(), args, opts) },
	}
	f := c.Flags()
	f.BoolVar(&opts.restart, "restart", false, "restart the service, check its answers, go back if it fails")
	watchFlag(f, &opts.watch)
	f.BoolVar(&opts.dryRun, "dry-run", false, "check everything and change nothing")
	f.BoolVar(&opts.verify, "verify", false, "check every byte of the package first")
	f.StringVar(&opts.proposal, "proposal", "", "take the proposal in this file")
	return c
}

func (a *app) runPkgSwitch(ctx context.Context, args []string, opts pkgSwitchOptions) error {
	h := a.host()
	unit, p, proposal, err := a.switchTarget(ctx, h, args, opts.proposal)
	if err != nil {
		return err
	}
	o, err := h.Switch(ctx, unit, p, fleet.SwitchOptions{
		Restart: opts.restart, Watch: opts.watch, DryRun: opts.dryRun, Verify: opts.verify,
		Notes: a.versionNotes(ctx, p.Manifest), Proposal: proposal,
	})
	return a.showOutcome(o, err, "")
}

// switchTarget is the unit and the package of a switch, and the proposal where it is one that is taken. A lone
// argument is a package where one of that name is installed, else a unit.
func (a *app) switchTarget(ctx context.Context, h *fleet.Host, args []string, file string) (unit string, p *store.Package, taken *fleet.Proposed, err error) {
	if file != "" && len(args) == 2 {
		return "", nil, nil, usagef("--proposal says which package: name the unit alone")
	}
	if file == "" && len(args) > 0 {
		p, err = a.store().Find(ctx, args[len(args)-1])
		if err == nil || len(args) == 2 || !errors.Is(err, store.ErrNotInstalled) {
			if err != nil {
				if len(args) == 2 && errors.Is(err, store.ErrNotInstalled) { // the scope may be the wrong one
					if _, uerr := h.Status(ctx, args[0]); errors.Is(uerr, systemd.ErrNoUnit) {
						err = uerr
					}
				}
				return "", nil, nil, err
			}
			unit, err = a.unit(ctx, h, args[:len(args)-1])
			return unit, p, nil, err
		}
	}
	notInstalled := err
	if unit, err = a.unit(ctx, h, args); err != nil {
		return "", nil, nil, err
	}
	if file != "" {
		taken, err = fleet.ReadProposal(file)
	} else {
		taken, err = h.Proposal(ctx, unit)
	}
	if notInstalled != nil && (errors.Is(err, systemd.ErrNoUnit) || errors.Is(err, systemd.ErrNoBus)) {
		err = fmt.Errorf("%w, and no unit of that name either (usage: 1bit pkg switch [UNIT] [ID])", notInstalled)
	}
	if err != nil {
		return "", nil, nil, err
	}
	if p, err = a.store().Find(ctx, taken.Package); err != nil {
		return "", nil, nil, fmt.Errorf("take the proposal for %s: %w", taken.Unit, err)
	}
	return unit, p, taken, nil
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
	watchFlag(c.Flags(), &watch)
	return c
}

// unit is the named unit, or the only service of this host.
func (a *app) unit(ctx context.Context, h *fleet.Host, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	return a.onlyUnit(ctx, h)
}
