package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
)

func newPkgUnblockCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unblock UNIT ID", Short: "Let a service use a package again that it was rolled back from", Args: between(2, 2),
		ValidArgsFunction: a.completeBlocked,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[1]
			if p, err := a.store().Find(cmd.Context(), name); err == nil {
				name = p.Name // a blocked package may be removed already: then its full name has to do
			}
			o, err := a.host().Unblock(cmd.Context(), args[0], name)
			sentence := ""
			if o != nil {
				sentence = fmt.Sprintf("%s may use %s again", o.Unit, name)
			}
			return a.showOutcome(o, err, sentence)
		},
	}
}

func newPkgUnswitchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unswitch UNIT", Short: "Remove every trace of ours from a unit", Args: between(1, 1),
		ValidArgsFunction: a.completeUnits,
		Long: `Remove our drop-in and what lies beside it, a hold too, and reload. The unit is then as its
owner wrote it, and what was blocked for it is forgotten; what runs is not touched. Works
without a bus (written, not loaded), for a masked unit, and for one of which only our files
are left. Files with lines that are not ours are refused and stay.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.host().Unswitch(cmd.Context(), args[0])
			return a.showOutcome(o, err, unswitchSentence(o))
		},
	}
}

func unswitchSentence(o *fleet.Outcome) string {
	switch {
	case o == nil:
		return ""
	case !o.Changed:
		return o.Unit + " has nothing of ours: nothing was changed"
	case !o.Loaded:
		return o.Unit + ": our files are removed, and that is not loaded: systemd could not be reached"
	}
	return givenBack(o)
}

// givenBack says that nothing of ours is left of a unit, and what that means for what runs.
func givenBack(o *fleet.Outcome) string {
	switch {
	case o.State == "" || o.State == fleet.StateGone:
		return o.Unit + ": our files are removed; the unit itself is not there any more"
	case o.RestartPending:
		return fmt.Sprintf("%s is as its owner wrote it; it still runs %s, and its next start uses %s: 1bit pkg restart %s",
			o.Unit, liveText(o.Live), or(o.To, "what its own files say"), o.Unit)
	}
	return o.Unit + " is as its owner wrote it"
}
