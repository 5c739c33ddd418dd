package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

type incidentOptions struct{ since, out, from string }

func newIncidentCommand(a *app) *cobra.Command {
	var opts incidentOptions
	c := &cobra.Command{
		Use:   "incident [UNIT] [--since TIME] [--out DIR] [--from DIR]",
		Short: "Write down how a service ended: its log, its package, its host",
		Long: `Write down how a service ended last: when and how, what its log says around it, what each
slot was doing, which package it ran from, what else used the GPU, and whether the like has
been there before. The report is Markdown, for an issue; -o json is the same for programs.
It is written, with the evidence it was made of, into a folder of its own below the state
folder, or into --out. Secrets are masked as far as a name or a shape tells them.

UNIT may be left out where the host has one service. One that is called list, watch or
recheck is named in full: 1bit incident watch.service. --since TIME looks at ends from then
on alone: a time (2026-10-23T07:40:00Z, "2026-10-23 07:40", 07:40), a day, or a span (2h).
--from DIR makes the report of a folder again and writes nothing without --out.`,
		Example: "  1bit incident 1bit-canonical\n  1bit incident llm --since 2h -o json\n  1bit incident watch --install",
		Args:    between(0, 1), ValidArgsFunction: a.completeUnits,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runIncident(cmd.Context(), args, opts) },
	}
	f := c.Flags()
	f.StringVar(&opts.since, "since", "", "only ends from then on: a time, a day or a span (default the last one that the journal knows)")
	f.StringVar(&opts.out, "out", "", "folder to write, which must not be there (default below the state folder)")
	f.StringVar(&opts.from, "from", "", "make the report of this incident's folder again")
	_ = c.MarkFlagDirname("out")
	_ = c.RegisterFlagCompletionFunc("from", a.completeIncidents)
	c.AddCommand(newIncidentListCommand(a), newIncidentWatchCommand(a), newIncidentRecheckCommand(a))
	return c
}

// incidentDocument is a report with the folder that it was written to, "" where it was not.
type incidentDocument struct {
	*incident.Report
	Folder string `json:"folder"`
}

func (a *app) runIncident(ctx context.Context, args []string, opts incidentOptions) error {
	var e *incident.Evidence
	var err error
	switch {
	case opts.from != "" && (len(args) > 0 || opts.since != ""):
		return usagef("--from takes unit and time from the folder: leave UNIT and --since out")
	case opts.from != "":
		e, err = incident.Read(opts.from)
	default:
		e, err = a.gatherIncident(ctx, args, opts)
	}
	if err != nil {
		return err
	}
	r := incident.Analyse(e)
	out, unwritten := a.writeIncident(e, r, opts)
	err = a.show(incidentDocument{r, out}, func(w io.Writer) error {
		_, err := io.WriteString(w, r.Markdown())
		return err
	})
	if err == nil && out != "" && !a.json() {
		fmt.Fprintf(a.stderr, "written to %s\n", out)
	}
	return errors.Join(err, unwritten)
}

// writeIncident writes a report to the folder that is asked for, or to one of its own where there is something to keep. It
// gives "" where nothing is written: the report is shown all the same.
func (a *app) writeIncident(e *incident.Evidence, r *incident.Report, opts incidentOptions) (out string, err error) {
	switch {
	case opts.out != "":
		out, err = opts.out, incident.Write(opts.out, e, r)
	case opts.from == "" && (r.Ending != nil || len(r.Guard) > 0):
		out, err = incident.WriteFree(filepath.Join(a.incidentsDir(), incident.FolderName(e.Unit, e.GatheredAt)), e, r)
	}
	if err != nil {
		return "", err
	}
	return out, nil
}

// incidentsDir holds the folders of incidents.
func (a *app) incidentsDir() string { return incidentsBelow(a.config.StateHome) }

func incidentsBelow(state string) string { return filepath.Join(state, "incidents") }

// gatherIncident gathers the evidence about a unit, of the manager that knows it.
func (a *app) gatherIncident(ctx context.Context, args []string, opts incidentOptions) (*incident.Evidence, error) {
	since, err := parseSince(opts.since, a.now())
	if err != nil {
		return nil, err
	}
	hosts, _ := a.hosts()
	unit := ""
	if len(args) == 1 {
		unit = args[0]
	} else if hosts, unit, err = a.onlyService(ctx, hosts); err != nil {
		return nil, err
	}
	var first error
	for _, h := range hosts {
		o, err := a.gatherOptions(h)
		if err != nil {
			return nil, err
		}
		o.Unit, o.Since = unit, since
		e, err := incident.Gather(ctx, o)
		if err == nil && e.Unread != nil && len(e.Entries) == 0 { // it would say that nothing happened
			err = fmt.Errorf("gather evidence about %s: %w", e.Unit, e.Unread)
		}
		if err == nil {
			if len(args) == 0 || h.Owner != "" {
				a.noteAll([]string{fmt.Sprintf("%s of the %s", e.Unit, sourceOf(h))})
			}
			return e, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, systemd.ErrNoUnit) && !errors.Is(err, systemd.ErrNoBus) {
			return nil, err
		}
	}
	return nil, first
}

// onlyService is the one service of this host and its manager: of those whose manager acts are for, or, where that has
// none, of all others that are seen.
func (a *app) onlyService(ctx context.Context, hosts []*fleet.Host) ([]*fleet.Host, string, error) {
	services, err := hosts[0].Status(ctx)
	if err != nil && (len(hosts) == 1 || !errors.Is(err, systemd.ErrNoBus)) {
		return nil, "", err
	}
	if len(services) > 0 || len(hosts) == 1 {
		unit, err := one(services)
		return hosts[:1], unit, err
	}
	survey, err := fleet.SurveyAll(ctx, hosts[1:]...)
	if err != nil {
		return nil, "", err
	}
	unit, err := one(survey.Services)
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(hosts, func(h *fleet.Host) bool {
		return h.Scope == survey.Services[0].Scope && h.Owner == survey.Services[0].User
	})
	return hosts[max(i, 0):][:1], unit, nil
}

// sourceOf names a host's manager.
func sourceOf(h *fleet.Host) string {
	if h.Owner != "" {
		return "user manager of " + h.Owner
	}
	return string(h.Scope) + " manager"
}

// gatherOptions are those for the services of a host, but for the unit.
func (a *app) gatherOptions(h *fleet.Host) (o incident.GatherOptions, err error) {
	o = incident.GatherOptions{
		Host: h, Scope: h.Scope, Packages: func(ctx context.Context) ([]*store.Package, error) { return h.Store.List(ctx) },
		Journal: systemd.ReadJournal, Sensors: a.sensors(), CI: a.ci(), Incidents: a.incidentsDir(),
		Now: a.now(), Program: Version,
	}
	for _, state := range []string{a.config.StateHome, h.StateDir, systemStateHome} {
		if path := filepath.Join(state, claim.HistoryFile); !slices.Contains(o.Claims, path) {
			o.Claims = append(o.Claims, path)
		}
	}
	o.UID, err = ownerID(h)
	return o, err
}

// ownerID is whose manager a host's is, 0 where it is our own or the machine's.
func ownerID(h *fleet.Host) (int, error) {
	if h.Owner == "" {
		return 0, nil
	}
	account, err := user.Lookup(h.Owner)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(account.Uid)
}

// parseSince reads from when on something counts: "" gives the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return notFuture(text, at, now)
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} { // today
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return notFuture(text, time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location()), now)
		}
	}
	return time.Time{}, usagef("--since is %q: it is a time (2026-10-23T07:40:00Z, \"2026-10-23 07:40\", 07:40), a day (2026-10-23) or a span (2h)", text)
}

func notFuture(text string, at, now time.Time) (time.Time, error) {
	if at.After(now) {
		return at, usagef("--since is %q, and that is to come", text)
	}
	return at, nil
}
