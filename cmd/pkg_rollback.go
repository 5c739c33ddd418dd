package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

func newPkgRollbackCommand(a *app) *cobra.Command {
	var opts fleet.RollbackOptions
	c := &cobra.Command{
		Use:   "rollback [UNIT]",
		Short: "Go back to the package that served before",
		Long: `Go back to the last package that this service was seen serving from. Needs no network, no
state and no free space; repeated it changes nothing. The package that was left is blocked
for this service until "1bit pkg unblock" lifts it. A hold does not stop a rollback.

--again goes one further back than the rollback goes, or went: to what served before that.
Where nothing is further back it says so, changes nothing and ends with 4. It may need a
little space on the disk.

--undo returns to what the last rollback left, also to one after a failed restart, and lifts
its block. Where nothing was rolled back it says so and changes nothing (0). Done after
--again it goes back the same steps, one at a time. A unit that was never switched or adopted
is refused by all three (4).`,
		Args: between(0, 1), ValidArgsFunction: a.completeUnits,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Reason = strings.TrimSpace(opts.Reason)
			switch {
			case opts.Again && opts.Undo:
				return usagef("--again goes further back and --undo returns: name one")
			case opts.Undo && cmd.Flags().Changed("reason"):
				return usagef("--reason says why a package is blocked, and --undo lifts a block")
			case len(opts.Reason) > maxReason:
				return usagef("--reason has %d bytes: at most %d", len(opts.Reason), maxReason)
			}
			h := a.host()
			asked, cancel := context.WithTimeout(cmd.Context(), statusWait)
			defer cancel()
			unit, err := a.unit(asked, h, args)
			if errors.Is(err, systemd.ErrNoBus) || err != nil && asked.Err() != nil && cmd.Context().Err() == nil {
				unit, err = a.onlySwitched(h, err)
			}
			if err != nil {
				return err
			}
			o, err := h.Rollback(cmd.Context(), unit, opts)
			return a.showOutcome(o, err, rollbackSentence(o, opts))
		},
	}
	f := c.Flags()
	f.BoolVar(&opts.Again, "again", false, "go one further back than the rollback goes, or went")
	f.BoolVar(&opts.Undo, "undo", false, "return to what the last rollback left")
	f.StringVar(&opts.Reason, "reason", "", "why the package is left, for status and whoever asks for it again")
	f.BoolVar(&opts.Restart, "restart", false, "restart the service too, and check its answers")
	watchFlag(f, &opts.Watch)
	return c
}

// onlySwitched is the one unit of this host with files of ours, where no manager can be asked for the services.
func (a *app) onlySwitched(h *fleet.Host, asked error) (string, error) {
	switched, err := h.Switched()
	switch {
	case err != nil || len(switched) == 0:
		return "", asked
	case len(switched) > 1:
		return "", usagef("%d services of this host were switched, name one: %s", len(switched), strings.Join(switched, ", "))
	}
	return switched[0], nil
}

// statusWait is how long a rollback without a name waits for the list of services. A manager that hangs has none.
const statusWait = 10 * time.Second

// maxReason bounds what a drop-in keeps of a reason, in bytes.
const maxReason = 500

// rollbackSentence is the sentence of an act that changed nothing where the general one would not say enough.
func rollbackSentence(o *fleet.Outcome, opts fleet.RollbackOptions) string {
	if o == nil || o.Changed || o.Restarted || !opts.Undo {
		return ""
	}
	return fmt.Sprintf("%s stays on %s: nothing was rolled back", o.Unit, or(o.To, "what its owner's own files say"))
}
