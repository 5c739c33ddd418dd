package cmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/acceptance/report"
)

func newAcceptVerdictCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verdict DIR", Short: "Judge an evidence folder again", Args: between(1, 1),
		Long: `Compute the verdict of an evidence folder again, from its plan and ledger alone. A ledger
that was edited or cut is noticed.`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := acceptance.JudgeDir(args[0])
			if err != nil {
				return err
			}
			return a.showVerdict(v, args[0])
		},
	}
}

func newAcceptReportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "report DIR", Short: "Write the report of a soak, for people", Args: between(1, 1),
		Long: `Write report.html, one file that needs no network, and report.md into an evidence folder:
claim, identities, arms, bounds, exposure, faces over time, and what was not tested. The
evidence itself is only read. A run writes both when it ends.`,
		ValidArgsFunction: completeFolders,
		RunE: func(_ *cobra.Command, args []string) error {
			html, markdown, err := report.WriteFiles(args[0])
			if err != nil {
				return err
			}
			return a.show(map[string]string{"html": html, "markdown": markdown}, say("%s\n%s", html, markdown))
		},
	}
}

func (a *app) showVerdict(v *acceptance.Verdict, dir string) error {
	if err := a.show(v, func(w io.Writer) error { return printVerdict(w, v, dir) }); err != nil {
		return err
	}
	switch {
	case a.json():
	case acceptance.Running(dir):
		fmt.Fprintf(a.stderr, "note: the run still goes on, this is of what it has recorded so far: 1bit accept watch %s follows it\n", dir)
	case v.Verdict == acceptance.Inconclusive && !v.Ledger.Closed:
		fmt.Fprintf(a.stderr, "hint: 1bit accept resume %s goes on with it\n", dir)
	}
	return verdictStatus(v)
}

// verdictStatus is the exit status of a verdict, nil for pass.
func verdictStatus(v *acceptance.Verdict) error {
	switch v.Verdict {
	case acceptance.Pass:
		return nil
	case acceptance.Fail:
		return statusError(exitVerdictBad)
	}
	return statusError(exitNoVerdict)
}
