package cmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
)

func newAcceptResumeCommand(a *app) *cobra.Command {
	detach := false
	c := &cobra.Command{
		Use: "resume DIR [--detach]", Short: "Go on with a soak whose runner was killed or interrupted", Args: between(1, 1),
		Long: `Go on with the run of an evidence folder where its runner ended: what was recorded counts,
what was left running is ended, and the life that was cut off is made again. Plan, packages,
models and program must be what they were. Ends as "1bit accept run" does; 7 if the run
still goes on. --detach is that of "1bit accept run".`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runAcceptResume(cmd.Context(), args[0], detach)
		},
	}
	c.Flags().BoolVar(&detach, "detach", false, "go on as a transient systemd unit and return")
	return c
}

func (a *app) runAcceptResume(ctx context.Context, dir string, detach bool) error {
	if detach {
		v, err := acceptance.JudgeDir(dir)
		switch {
		case err != nil:
			return err
		case acceptance.Running(dir):
			return fmt.Errorf("%w: %s", acceptance.ErrRunning, dir)
		case v.Ledger.Closed:
			return fmt.Errorf("%w: %s: it has ended", acceptance.ErrLedger, dir)
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return fmt.Errorf("find the evidence folder: %w", err)
		}
		return a.detachSoak(ctx, v.Package, dir, []string{"resume", dir})
	}
	o, done := a.runOptions(ctx, dir, "soak")
	defer done()
	v, err := acceptance.Resume(ctx, o)
	done()
	if err != nil {
		return err
	}
	return a.showNewVerdict(v, dir)
}
