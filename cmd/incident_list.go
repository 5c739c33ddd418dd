package cmd

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/internal/ui"
)

func newIncidentListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the incidents of this host that were written down", Args: between(0, 0),
		Long: `List the incidents below the state folder, the latest first; root sees those of the users
whose manager runs too. Those with the same signature are of one kind.`,
		RunE: func(*cobra.Command, []string) error { return a.runIncidentList() },
	}
}

func (a *app) runIncidentList() error {
	all, problems, err := incident.List(a.incidentsDir())
	if err != nil {
		return err
	}
	hosts, _ := a.hosts()
	for _, h := range hosts {
		if h.Owner == "" { // others' own watches write into others' homes
			continue
		}
		more, others, err := incident.List(incidentsBelow(h.StateDir))
		if err != nil {
			others = append(others, err.Error())
		}
		all, problems = append(all, more...), append(problems, others...)
	}
	slices.SortStableFunc(all, func(a, b incident.Earlier) int { return b.At.Compare(a.At) })
	a.noteAll(problems)
	return a.show(map[string]any{"incidents": all}, func(w io.Writer) error {
		if len(all) == 0 {
			_, err := io.WriteString(w, "no incident of this host was written down\n")
			return err
		}
		rows := [][]string{{"ENDED", "UNIT", "PACKAGE", "SIGNATURE", "FOLDER"}}
		for _, one := range all {
			rows = append(rows, []string{one.At.Local().Format("2006-01-02 15:04:05 MST"), ui.Clean(one.Unit), ui.Clean(or(one.Package, "-")), ui.Clean(one.Signature), ui.Clean(one.Folder)})
		}
		return ui.Table(w, rows)
	})
}
