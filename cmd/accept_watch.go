package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/ui"
)

type acceptWatchOptions struct{ every time.Duration }

func newAcceptWatchCommand(a *app) *cobra.Command {
	opts := acceptWatchOptions{every: 2 * time.Second}
	c := &cobra.Command{
		Use: "watch DIR", Short: "Follow a soak that is running, by its evidence folder", Args: between(1, 1),
		Long: `Follow the run of an evidence folder by its ledger alone, until it has ended; then its
verdict is shown. Bounds that are seen on the way inform and decide nothing. Ctrl-C ends
the watching, not the soak. With -o json one object a line.`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runAcceptWatch(cmd.Context(), args[0], opts) },
	}
	c.Flags().Var((*span)(&opts.every), "every", "time between two looks")
	return c
}

type watchDocument struct {
	Phase             string  `json:"phase"`
	Running           bool    `json:"running"`
	Ended             bool    `json:"ended"`
	Arm               string  `json:"arm"`
	Life              int     `json:"life"` // from 1, those made again included
	Lives             int     `json:"lives"`
	Requests          int     `json:"requests"`
	Faults            int     `json:"faults"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	RequestUpper95    float64 `json:"anytime_request_upper_95"` // may be looked at at any time
	ElapsedSeconds    float64 `json:"elapsed_seconds"`
	LeftSeconds       float64 `json:"left_seconds"` // 0: not known
	Verdict           string  `json:"verdict"`      // once it has ended
	Reason            string  `json:"reason"`
}

func (a *app) runAcceptWatch(ctx context.Context, dir string, opts acceptWatchOptions) error {
	if opts.every < 100*time.Millisecond {
		return usagef("--every is 100ms or more")
	}
	if err := mayBeRun(dir); err != nil {
		return err
	}
	var last acceptance.Status
	lines := json.NewEncoder(a.stdout)
	line := ui.NewLine(a.stderr)
	err := acceptance.Watch(ctx, dir, opts.every, func(s acceptance.Status) {
		last = s
		switch {
		case a.json():
			_ = lines.Encode(watched(s)) // a reader that has gone ends the watching by SIGPIPE
		case !a.flags.quiet:
			line.Say(s.Progress.String())
		}
	})
	line.Clear()
	switch {
	case err != nil:
		return err
	case last.Verdict == nil:
		return fmt.Errorf("watch %s: nothing has been recorded yet", dir)
	case a.json():
		return verdictStatus(last.Verdict)
	case !last.Closed && !last.Running:
		fmt.Fprintf(a.stderr, "note: the runner is gone before the run had ended: 1bit accept resume %s goes on\n", dir)
	}
	return a.showVerdict(last.Verdict, dir)
}

// mayBeRun refuses a folder that no run will come to: it has one, or it is empty because one has just been detached.
func mayBeRun(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("watch the run of %s: %w", dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, acceptance.LedgerName))
	if len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return usagef("%s is not the evidence folder of a run", dir)
	}
	return nil
}

func watched(s acceptance.Status) watchDocument {
	d := watchDocument{
		Phase: s.Phase, Running: s.Running, Ended: s.Closed, Arm: s.Arm, Life: s.Life, Lives: s.Lives, Requests: s.Requests,
		Faults: s.Faults, RequestsPerSecond: s.RequestsPerSecond, RequestUpper95: 1,
		ElapsedSeconds: s.Elapsed.Seconds(), LeftSeconds: s.Left.Seconds(),
	}
	if s.Requests > 0 {
		d.RequestUpper95 = s.Bound
	}
	if v := s.Verdict; v != nil {
		d.Verdict, d.Reason = v.Verdict, v.Reason
	}
	return d
}
