package cmd

import (
	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
)

func newPkgRollbackCommand(a *app) *cobra.Command {
	var opts fleet.RollbackOptions
	c := &cobra.Command{
		Use:   "rollback [UNIT]",
		Short: "Go back to the package that served before",
		Long: `Go back to the last package that this service was seen serving from. Needs no network, no
state and no free space; repeated it changes nothing. The package that was left is blocked
for this service until "1bit pkg unblock" lifts it.`,
		Args: between(0, 1), ValidArgsFunction: a.completeUnits,
		RunE: func(cmd *cobra.Command, args []string) error {
			h := a.host()
			unit, err := a.unit(cmd.Context(), h, args)
			if err != nil {
				return err
			}
			o, err := h.Rollback(cmd.Context(), unit, opts)
			return a.showOutcome(o, err, "")
		},
	}
	c.Flags().BoolVar(&opts.Restart, "restart", false, "restart the service too")
	c.Flags().DurationVar(&opts.Watch, "watch", defaultWatch, "how long to watch the service after its restart")
	return c
}
