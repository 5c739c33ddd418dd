package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
)

func newAcceptResumeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume DIR", Short: "Go on with a soak whose runner was killed or interrupted", Args: between(1, 1),
		Long: `Go on with the run of an evidence folder where its runner ended: what was recorded counts,
what was left running is ended, and the life that was cut off is made again. Plan, packages,
models and program must be what they were. Ends as "1bit accept run" does; 7 if the run
still goes on.`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runAcceptResume(cmd.Context(), args[0]) },
	}
}

func (a *app) runAcceptResume(ctx context.Context, dir string) error {
	o, done := a.runOptions(ctx, dir, "soak")
	defer done()
	v, err := acceptance.Resume(ctx, o)
	done()
	if err != nil {
		return err
	}
	return a.showNewVerdict(v, dir)
}
