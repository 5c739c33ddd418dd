package cmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
)

type pkgProposeOptions struct {
	reason, out      string
	withdraw, verify bool
}

func newPkgProposeCommand(a *app) *cobra.Command {
	var opts pkgProposeOptions
	c := &cobra.Command{
		Use: "propose UNIT ID", Short: "Suggest to the owner that a service be switched", Args: between(1, 2),
		ValidArgsFunction: a.completeUnitThenPackage,
		Long: `Suggest a switch. All that a switch would look at is looked at, and reported; nothing that runs
or will run is changed, and nobody is asked. The owner sees the proposal in "1bit pkg status"
and takes it with "1bit pkg switch UNIT".

--out FILE writes it for an owner under another account, who takes it with
"1bit pkg switch UNIT --proposal FILE". Who proposed it is a claim; that the package is exactly
the one that was looked at is checked by its digest. --withdraw takes the proposal back.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgPropose(cmd.Context(), args, opts) },
	}
	f := c.Flags()
	f.StringVar(&opts.reason, "reason", "", "why, for the owner")
	f.StringVar(&opts.out, "out", "", "write the proposal to a file, for an owner under another account")
	f.BoolVar(&opts.withdraw, "withdraw", false, "take back what is proposed for the unit")
	f.BoolVar(&opts.verify, "verify", false, "check every byte of the package first")
	return c
}

func (a *app) runPkgPropose(ctx context.Context, args []string, opts pkgProposeOptions) error {
	h := a.host()
	switch {
	case opts.withdraw && (len(args) == 2 || opts.out != ""):
		return usagef("--withdraw takes back what is proposed for a unit: it wants the unit alone")
	case opts.withdraw:
		return a.withdraw(ctx, h, args[0])
	case len(args) < 2:
		return usagef("name the package too: usage is 1bit pkg propose UNIT ID")
	}
	p, err := a.store().Find(ctx, args[1])
	if err != nil {
		return err
	}
	if opts.out != "" {
		if opts.out, err = filepath.Abs(opts.out); err != nil {
			return err
		}
	}
	o, err := h.Propose(ctx, args[0], p, fleet.ProposeOptions{
		Reason: opts.reason, Out: opts.out, Verify: opts.verify, Notes: a.versionNotes(ctx, p.Manifest),
	})
	sentence := ""
	if o != nil && o.Changed {
		take := "1bit pkg switch " + o.Unit
		if opts.out != "" {
			take += " --proposal " + opts.out
		}
		sentence = fmt.Sprintf("%s is proposed for %s; nothing was changed. The owner takes it with: %s", o.To, o.Unit, take)
	}
	return a.showOutcome(o, err, sentence)
}

func (a *app) withdraw(ctx context.Context, h *fleet.Host, unit string) error {
	was, err := h.Withdraw(ctx, unit)
	if err != nil {
		return err
	}
	doc := struct {
		Unit      string `json:"unit"`
		Withdrawn string `json:"withdrawn"` // the package, "" where the proposal could not be read
	}{Unit: unit}
	if was != nil {
		doc.Unit, doc.Withdrawn = was.Unit, was.Package
	}
	return a.show(doc, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s is no longer proposed for %s\n", ui.Clean(or(doc.Withdrawn, "what could not be read")), doc.Unit)
		return err
	})
}
