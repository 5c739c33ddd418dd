package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newPkgUnblockCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unblock UNIT ID", Short: "Let a service use a package again that it was rolled back from", Args: between(2, 2),
		ValidArgsFunction: a.completeUnitThenPackage,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[1]
			if p, err := a.store().Find(cmd.Context(), name); err == nil {
				name = p.Name // a blocked package may be removed already: then its full name has to do
			}
			o, err := a.host().Unblock(cmd.Context(), args[0], name)
			return a.showOutcome(o, err, fmt.Sprintf("%s may use %s again", args[0], name))
		},
	}
}

func newPkgUnswitchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unswitch UNIT", Short: "Remove every trace of ours from a unit", Args: between(1, 1),
		ValidArgsFunction: a.completeUnits,
		Long: `Remove our drop-in and what lies beside it, and reload. The unit is then as its owner wrote
it; what runs is not touched.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.host().Unswitch(cmd.Context(), args[0])
			return a.showOutcome(o, err, args[0]+" is as its owner wrote it")
		},
	}
}
