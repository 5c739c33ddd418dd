package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
)

func newPkgStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status [UNIT…]", Short: "Show what services are configured to run and what they really run", Args: between(0, -1),
		ValidArgsFunction: a.completeUnits,
		Long: `Show for every service what is armed (what the next start uses), what is live (what its
processes were started from, the main process and its child server told apart), what
served before, and everything that stands in the way.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgStatus(cmd.Context(), args) },
	}
}

func (a *app) runPkgStatus(ctx context.Context, units []string) error {
	services, err := a.host().Status(ctx, units...)
	if err != nil {
		return err
	}
	doc := struct {
		Services []fleet.Service `json:"services"`
	}{append([]fleet.Service{}, services...)}
	return a.show(doc, func(w io.Writer) error {
		if len(services) == 0 {
			_, err := fmt.Fprintln(w, "no service of this host runs a package")
			return err
		}
		rows := [][]string{{"SERVICE", "ARMED", "LIVE", "SERVED BEFORE", "HEALTH", "STATE"}}
		for _, s := range services {
			rows = append(rows, serviceRow(s))
		}
		if err := ui.Table(w, rows); err != nil {
			return err
		}
		for _, s := range services {
			for _, note := range serviceNotes(s) {
				fmt.Fprintf(w, "%s: %s\n", s.Unit, ui.Clean(note))
			}
		}
		return nil
	})
}

func serviceRow(s fleet.Service) []string {
	armed, live, before, state := "-", "stopped", "-", "as armed"
	if s.Armed != nil {
		armed = s.Armed.Package
	}
	if s.ServedBefore != nil {
		before = s.ServedBefore.Package
	}
	if s.Live != nil {
		live = liveText(s.Live)
	} else {
		state = "stopped"
	}
	switch {
	case s.Live != nil && s.Live.Unreadable:
		state = "not known"
	case s.RestartPending:
		state = "restart pending"
	}
	return []string{s.Unit, armed, live, before, s.Health, state}
}

func liveText(l *fleet.Live) string {
	main, child := "-", ""
	if l.Main != nil {
		main = l.Main.Package
	}
	if l.Child != nil {
		child = l.Child.Package
	}
	switch {
	case l.Unreadable:
		return "unreadable"
	case child == "" || child == main:
		return main
	}
	return fmt.Sprintf("%s, its server %s", main, child)
}

// serviceNotes are the findings below the table, each a sentence.
func serviceNotes(s fleet.Service) []string {
	var notes []string
	if s.OverriddenBy != nil {
		notes = append(notes, fmt.Sprintf("%s:%d wins over our drop-in (%s)", s.OverriddenBy.File, s.OverriddenBy.Line, s.OverriddenBy.Value))
	}
	for _, o := range s.Shadowed {
		notes = append(notes, fmt.Sprintf("%s:%d is shadowed by our drop-in (%s)", o.File, o.Line, o.Value))
	}
	for _, b := range s.Blocked {
		notes = append(notes, fmt.Sprintf("%s is blocked: %s", b.Package, b.Reason))
	}
	return append(notes, s.Warnings...)
}

func newPkgHistoryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "history [UNIT]", Short: "Show which packages a service was moved between, when and by whom", Args: between(0, 1),
		ValidArgsFunction: a.completeUnits,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPkgHistory(cmd.Context(), args) },
	}
}

func (a *app) runPkgHistory(ctx context.Context, args []string) error {
	h := a.host()
	unit, err := a.unit(ctx, h, args)
	if err != nil {
		return err
	}
	records, err := h.History(ctx, unit)
	if err != nil {
		return err
	}
	doc := struct {
		Unit    string         `json:"unit"`
		History []fleet.Record `json:"history"`
	}{unit, append([]fleet.Record{}, records...)}
	return a.show(doc, func(w io.Writer) error {
		if len(records) == 0 {
			_, err := fmt.Fprintf(w, "nothing was ever switched for %s\n", unit)
			return err
		}
		rows := [][]string{{"WHEN", "WHO", "ACT", "FROM", "TO", "RESULT"}}
		for _, r := range records {
			rows = append(rows, []string{
				r.At.Local().Format("2006-01-02 15:04:05"), r.By, r.Act, or(r.From, "-"), or(r.To, "-"), or(strings.Trim(r.Result+": "+r.Reason, ": "), "-"),
			})
		}
		return ui.Table(w, rows)
	})
}

func or(s, otherwise string) string {
	if strings.TrimSpace(s) == "" {
		return otherwise
	}
	return strings.TrimSpace(s)
}

func join(names []string) string { return strings.Join(names, ", ") }
