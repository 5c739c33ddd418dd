package cmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/internal/ui"
)

func newIncidentListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the incidents of this host that were written down", Args: between(0, 0),
		Long: `List the incidents below the state folder, the latest first. Those with the same signature
are of one kind.`,
		RunE: func(*cobra.Command, []string) error { return a.runIncidentList() },
	}
}

func (a *app) runIncidentList() error {
	all, problems, err := incident.List(a.incidentsDir())
	if err != nil {
		return err
	}
	a.noteAll(problems)
	return a.show(map[string]any{"incidents": all}, func(w io.Writer) error {
		if len(all) == 0 {
			_, err := io.WriteString(w, "no incident of this host was written down\n")
			return err
		}
		rows := [][]string{{"ENDED", "UNIT", "PACKAGE", "SIGNATURE", "FOLDER"}}
		for _, one := range all {
			rows = append(rows, []string{one.At.Local().Format("2006-01-02 15:04:05"), ui.Clean(one.Unit), ui.Clean(or(one.Package, "-")), ui.Clean(one.Signature), one.Folder})
		}
		return ui.Table(w, rows)
	})
}
