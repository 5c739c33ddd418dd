package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/systemd"
)

func newPkgStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status [UNIT…]", Short: "Show what services are configured to run and what they really run", Args: between(0, -1),
		ValidArgsFunction: a.completeUnits,
		Long: `Show for every service what is armed (what the next start uses), what is live (what its
processes were started from, the main process and its child server told apart), what
served before, and everything that stands in the way.

Without a UNIT every service of the user's own manager and of the system's that has
anything to do with a package is found, whatever its name, and below the table those
that look like an engine and run no package. Root sees everybody's. --scope shows one
manager only. Named units are those of the scope that acts are for.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPkgStatus(cmd.Context(), args) },
	}
}

func (a *app) runPkgStatus(ctx context.Context, units []string) error {
	survey := &fleet.Survey{}
	var err error
	if len(units) > 0 {
		survey.Services, err = a.host().Status(ctx, units...)
	} else {
		hosts, notes := a.hosts()
		survey, err = fleet.SurveyAll(ctx, hosts...)
		if err == nil {
			survey.Notes = append(notes, survey.Notes...)
		}
	}
	if err != nil {
		return err
	}
	doc := fleet.Survey{
		Services: append([]fleet.Service{}, survey.Services...), Lookalikes: append([]fleet.Lookalike{}, survey.Lookalikes...),
		Notes: append([]string{}, survey.Notes...),
	}
	return a.show(doc, func(w io.Writer) error { return writeSurvey(w, survey, systemd.Scope(a.config.Scope), len(units) > 0) })
}

// writeSurvey writes the table and what is to be known of each service; of named ones every line of it.
func writeSurvey(w io.Writer, survey *fleet.Survey, own systemd.Scope, named bool) error {
	if len(survey.Services) == 0 {
		fmt.Fprintln(w, "no service of this host runs a package")
	} else if err := ui.Table(w, serviceTable(survey.Services, own)); err != nil {
		return err
	}
	for _, s := range survey.Services {
		for _, note := range serviceNotes(s, named) {
			fmt.Fprintf(w, "%s: %s\n", s.Unit, ui.Clean(note))
		}
	}
	for _, l := range survey.Lookalikes {
		fmt.Fprintf(w, "%s (%s) looks like an engine and runs no package: %s\n  %s\n", l.Unit, whose(l.Scope, l.User), ui.Clean(l.Why), ui.Clean(l.Hint))
	}
	for _, note := range survey.Notes {
		fmt.Fprintf(w, "note: %s\n", ui.Clean(note))
	}
	return nil
}

// serviceTable has a column for the scope where one is not that of the caller's acts.
func serviceTable(services []fleet.Service, own systemd.Scope) [][]string {
	others := slices.ContainsFunc(services, func(s fleet.Service) bool { return s.Scope != own || s.User != "" })
	rows := [][]string{{"SERVICE", "ARMED", "LIVE", "SERVED BEFORE", "HEALTH", "STATE"}}
	for _, s := range services {
		rows = append(rows, serviceRow(s))
	}
	if others {
		rows[0] = slices.Insert(rows[0], 1, "SCOPE")
		for i, s := range services {
			rows[i+1] = slices.Insert(rows[i+1], 1, whose(s.Scope, s.User))
		}
	}
	return rows
}

// whose names a manager in a table: "user ai" is another user's.
func whose(scope systemd.Scope, user string) string {
	return strings.TrimSpace(string(scope) + " " + user)
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
	case s.State == fleet.StateGone:
		state = "gone"
	case strings.Contains(s.State, "(auto-restart"):
		live, state = "-", "restarting"
	case strings.HasPrefix(s.State, "failed"):
		state = "failed"
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
		main = or(l.Main.Package, "-")
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

// serviceNotes are the findings below the table, each a sentence, what is wrong first. What our drop-in was written to win
// over is told line by line where all is asked for.
func serviceNotes(s fleet.Service, all bool) []string {
	notes := append(slices.Clone(s.Warnings), ownerNotes(s)...)
	if len(s.Shadowed) > 0 && !all {
		notes = append(notes, fmt.Sprintf("our drop-in wins over %s of other files: 1bit pkg status %s lists them", lines(len(s.Shadowed)), s.Unit))
	}
	for _, o := range s.Shadowed {
		if all {
			notes = append(notes, fmt.Sprintf("%s is shadowed by our drop-in (%s)", placeText(o), o.Value))
		}
	}
	for _, b := range s.Blocked {
		notes = append(notes, fmt.Sprintf("%s is blocked: %s (1bit pkg unblock %s %s lifts that)", b.Package, b.Reason, s.Unit, b.Package))
	}
	return notes
}

func lines(n int) string {
	if n == 1 {
		return "a line"
	}
	return fmt.Sprintf("%d lines", n)
}

// placeText says where a line stands, and whose file it is where it is not the unit's alone.
func placeText(p fleet.Place) string {
	text := fmt.Sprintf("%s:%d", p.File, p.Line)
	if p.Of != "" {
		text += " of the " + p.Of
	}
	return text
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
			if r.From == r.To { // a restart moves nothing that is armed
				r.From = ""
			}
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
