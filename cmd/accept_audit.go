package cmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/ui"
)

type acceptAuditOptions struct {
	answer string
}

func newAcceptAuditCommand(a *app) *cobra.Command {
	var opts acceptAuditOptions
	c := &cobra.Command{
		Use: "audit DIR", Short: "Compare the raw answers of a soak with its ledger", Args: between(1, 1),
		Long: `Read every raw answer in an evidence folder, compare its bytes with the digest in the
ledger, and show it to the detectors once more, also to those that the plan had switched
off. The files of every life that is over are compared with their digests too. What the
ledger does not tell is listed, and the exit status is 5.

--answer ARM/REQUEST writes the raw bytes of one answer to standard output instead.`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runAcceptAudit(cmd.Context(), args[0], opts) },
	}
	c.Flags().StringVar(&opts.answer, "answer", "", "write this answer as it came, such as 3/218 (arm 3, request 218)")
	return c
}

func (a *app) runAcceptAudit(ctx context.Context, dir string, opts acceptAuditOptions) error {
	if opts.answer != "" {
		return a.writeAnswer(dir, opts.answer)
	}
	bar := a.progress("audit")
	defer bar.Close()
	audit, err := acceptance.AuditDir(ctx, dir, func(n int) { bar.Update(int64(n), 0, fmt.Sprintf("%d answers", n)) })
	bar.Close()
	if err != nil {
		return err
	}
	if err := a.show(audit, func(w io.Writer) error { return printAudit(w, audit) }); err != nil {
		return err
	}
	if !audit.OK() {
		return statusError(exitIntegrity)
	}
	return nil
}

func (a *app) writeAnswer(dir, place string) error {
	arm, request, both := strings.Cut(place, "/")
	n, err := strconv.Atoi(arm)
	m, merr := strconv.Atoi(request)
	if !both || err != nil || merr != nil {
		return usagef("--answer %s: say ARM/REQUEST, such as 3/218", place)
	}
	raw, err := acceptance.RawAnswer(dir, n, m)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(raw)
	return err
}

func printAudit(w io.Writer, audit *acceptance.Audit) error {
	if audit.OK() {
		_, err := fmt.Fprintf(w, "%d answers: all there, as the ledger has them, like the files of every life, and the detectors find nothing that it does not tell\n", audit.Answers)
		return err
	}
	fmt.Fprintf(w, "%d of %d answers are stored\n", audit.Answers, audit.Requests)
	if audit.Damage != "" {
		fmt.Fprintf(w, "the ledger is damaged, and was read up to there: %s\n", audit.Damage)
	}
	rows := [][]string{{"ARM", "REQUEST", "WHAT"}}
	for _, list := range [][]acceptance.AuditPlace{audit.Missing, audit.Different, audit.Overseen} {
		for _, p := range list {
			rows = append(rows, []string{fmt.Sprint(p.Arm), fmt.Sprint(p.Request), p.What})
		}
	}
	for _, f := range audit.Files {
		rows = append(rows, []string{fmt.Sprint(f.Arm), f.Name, f.What})
	}
	return ui.Table(w, rows)
}
