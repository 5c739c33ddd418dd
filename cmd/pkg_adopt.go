package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
)

func newPkgAdoptCommand(a *app) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "adopt UNIT",
		Short: "Take over what was written by hand: variables, or an ExecStart= that names a package",
		Long: `Take over a binding that was written by hand, so that from then on switch and rollback move
it: variables that the unit file or drop-ins set (hrx.conf), and an ExecStart= that itself
starts a program of a package, which becomes /usr/bin/env ${VARIABLE} with the same
arguments. No file of yours is touched: our drop-in says the same once more, and the lines
that it takes over no longer decide. The difference is shown first, and nothing is armed
that was not. "1bit pkg unadopt" gives the unit back.

Refused, with file and line, is what cannot move with the rest or would win over it, and a
package that is not installed (take a directory in with "1bit pkg import DIR").`,
		Args: between(1, 1), ValidArgsFunction: a.completeUnits,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgAdopt(cmd.Context(), args[0], dry) },
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "show the difference and change nothing")
	return c
}

func (a *app) runPkgAdopt(ctx context.Context, unit string, dry bool) error {
	h := a.host()
	shown := false
	if !dry && !a.json() { // the owner sees what he is asked about
		o, err := h.Adopt(ctx, unit, true)
		if err != nil {
			return err
		}
		printAdoption(a.stdout, o)
		shown = true
	}
	o, err := h.Adopt(ctx, unit, dry)
	if o == nil {
		return err
	}
	serr := a.show(o, func(w io.Writer) error {
		if !shown {
			printAdoption(w, o)
		}
		fmt.Fprintln(w, adoptionSentence(o))
		for _, note := range o.Notes {
			fmt.Fprintf(w, "note: %s\n", ui.Clean(note))
		}
		return nil
	})
	return errors.Join(err, serr)
}

func adoptionSentence(o *fleet.Adoption) string {
	switch {
	case o.Changed:
		return fmt.Sprintf("%s is adopted with %s: 1bit pkg switch moves it from now on", o.Unit, o.To)
	case o.DryRun && o.Diff != "":
		return fmt.Sprintf("%s would be adopted with %s; nothing was changed", o.Unit, o.To)
	}
	return fmt.Sprintf("%s is adopted with %s already: nothing was changed", o.Unit, o.To)
}

// printAdoption shows the difference, and what it takes the force of.
func printAdoption(w io.Writer, o *fleet.Adoption) {
	for line := range strings.Lines(o.Diff) {
		fmt.Fprintln(w, ui.Clean(strings.TrimSuffix(line, "\n")))
	}
	for _, l := range o.TakenOver {
		fmt.Fprintf(w, "%s:%d: %s: stays as it is, no longer decides\n", ui.Clean(l.File), l.Line, ui.Clean(l.Text))
	}
}

func newPkgUnadoptCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unadopt UNIT", Short: "Give an adopted unit back to its own files", Args: between(1, 1),
		ValidArgsFunction: a.completeUnits,
		Long: `Remove our drop-in from an adopted unit and reload: its own lines decide again, byte for
byte as they were. Refused while another package is armed than those lines name: roll back
first, or remove everything with "1bit pkg unswitch".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.host().Unadopt(cmd.Context(), args[0])
			sentence := ""
			if o != nil && o.Changed {
				sentence = givenBack(o)
			}
			return a.showOutcome(o, err, sentence)
		},
	}
}
