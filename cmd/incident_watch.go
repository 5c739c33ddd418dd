package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/systemd"
)

type incidentWatchOptions struct{ install bool }

func newIncidentWatchCommand(a *app) *cobra.Command {
	var opts incidentWatchOptions
	c := &cobra.Command{
		Use: "watch [--install]", Short: "Write a report whenever a service that runs a package ends badly", Args: between(0, 0),
		Long: `Follow the journals and write one report, as "1bit incident" does, for each bad end of a
service that runs a package, and of a server under a front end that outlives it. Ordinary
stops and restarts are none. It goes on until it is
interrupted, and where it was when it begins anew: what happened meanwhile is reported late.
A service that crashes again and again gets the first report, and one for all the others.

--install writes a unit that runs it and says how to enable that; it enables and starts
nothing. With -o json one object a report, on a line.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.install {
				return a.installIncidentWatch()
			}
			return a.runIncidentWatch(cmd.Context())
		},
	}
	c.Flags().BoolVar(&opts.install, "install", false, "write the unit that runs it, and return")
	return c
}

// watchedIncident is what is said of a report that was written.
type watchedIncident struct {
	Unit      string `json:"unit"`
	Event     string `json:"event"`
	Title     string `json:"title"`
	Signature string `json:"signature"`
	Ends      int    `json:"ends"` // that the report is about
	Folder    string `json:"folder"`
}

func (a *app) runIncidentWatch(ctx context.Context) error {
	done, err := a.onlyWatch()
	if err != nil {
		return err
	}
	defer done()
	_, notes := a.hosts()
	a.noteAll(notes)
	o := incident.WatchOptions{
		Follow: systemd.FollowJournal, Incidents: a.incidentsDir(), State: filepath.Join(a.config.StateHome, "incident-watch.json"),
		Now: a.now, Log: a.log,
	}
	o.Sources = func() []incident.Source {
		hosts, _ := a.hosts()
		var sources []incident.Source
		for _, h := range hosts {
			source, err := a.watchSource(h)
			if err != nil { // an account that is gone: its manager is, too
				a.log.Warn("a manager is not watched", "error", err)
				continue
			}
			sources = append(sources, source)
		}
		return sources
	}
	lines := json.NewEncoder(a.stdout)
	const waiting = "watching for bad ends"
	o.Written = func(dir string, ends int, r *incident.Report) {
		if a.json() {
			_ = lines.Encode(watchedIncident{r.Unit, r.Event, r.Title, r.Signature, ends, dir}) // a reader that has gone ends the watch by SIGPIPE
			return
		}
		more := ""
		if ends > 1 {
			more = fmt.Sprintf(" (%d ends)", ends)
		}
		a.line.Clear()
		fmt.Fprintf(a.stdout, "%s%s: %s\n", ui.Clean(r.Title), more, dir)
		a.line.Say(waiting)
	}
	a.line.Say(waiting)
	defer a.line.Clear()
	return incident.Watch(ctx, o)
}

// onlyWatch takes the lock that one watch has, until done.
func (a *app) onlyWatch() (done func(), err error) {
	if err := atomicfile.MkdirAll(a.config.StateHome, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(a.config.StateHome, "incident-watch.lock")
	lock := flock.New(path)
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !held {
		return nil, fmt.Errorf("%w: another watch for incidents runs (it holds %s)", fleet.ErrBusy, path)
	}
	return func() { _ = lock.Unlock() }, nil
}

// watchSource is a host's manager, to be watched.
func (a *app) watchSource(h *fleet.Host) (s incident.Source, err error) {
	s.Name = string(h.Scope)
	if h.Owner != "" {
		s.Name += " " + h.Owner
	}
	s.Query = systemd.JournalQuery{Scope: h.Scope}
	if s.Query.UID, err = ownerID(h); err != nil {
		return s, err
	}
	s.Units = func(ctx context.Context) ([]string, error) {
		services, err := h.Inspect(ctx)
		if err != nil {
			return nil, err
		}
		var units []string
		for _, one := range services {
			units = append(units, one.Unit)
		}
		return units, nil
	}
	s.Running = h.Running
	s.Gather = func(ctx context.Context, unit string, since, until time.Time, lost []incident.Lost) (*incident.Evidence, error) {
		o, err := a.gatherOptions(h)
		if err != nil {
			return nil, err
		}
		o.Unit, o.Since, o.Until, o.Lost = unit, since, until, lost
		return incident.Gather(ctx, o)
	}
	return s, nil
}

// installedWatch is what --install did.
type installedWatch struct {
	Unit    string   `json:"unit"`
	Path    string   `json:"path"`
	Text    string   `json:"text"`
	Next    []string `json:"next"` // the commands that load, enable and start it
	Notes   []string `json:"notes"`
	Changed bool     `json:"changed"`
}

// watchArgs is the command of a watch with the settings of this one. Where no scope was named it watches all that it sees.
func (a *app) watchArgs(self string) ([]string, error) {
	args := []string{self}
	if a.scopeNamed() {
		args = append(args, "--scope", a.config.Scope)
	}
	args = append(args, "--data-home", a.config.DataHome, "--state-home", a.config.StateHome)
	if a.flags.config != "" {
		path, err := filepath.Abs(a.flags.config)
		if err != nil {
			return nil, err
		}
		args = append(args, "--config", path)
	}
	return append(args, "incident", "watch"), nil
}

func (a *app) installIncidentWatch() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	scope := systemd.Scope(a.config.Scope)
	args, err := a.watchArgs(self)
	if err != nil {
		return err
	}
	out := installedWatch{Unit: incident.WatchUnit, Text: incident.UnitText(scope, args), Notes: []string{}}
	if out.Path, out.Changed, err = incident.InstallUnit(a.host().UnitDir, out.Text); err != nil {
		return err
	}
	ctl := "systemctl" + scopeFlag(scope)
	out.Next = []string{ctl + " daemon-reload", ctl + " enable --now " + out.Unit}
	if scope == systemd.ScopeUser && !systemd.Lingers("/", a.user) {
		out.Next = append(out.Next, "loginctl enable-linger "+a.user)
		out.Notes = append(out.Notes, fmt.Sprintf("%s does not linger: without the last command the watch ends with the last logout and does not start at boot", a.user))
	}
	return a.show(out, func(w io.Writer) error {
		if out.Changed {
			fmt.Fprintf(w, "%s is written and not started. To load, start and keep it:\n", out.Path)
		} else {
			fmt.Fprintf(w, "%s is there already, as it should be. To load, start and keep it:\n", out.Path)
		}
		for _, command := range out.Next {
			fmt.Fprintf(w, "  %s\n", command)
		}
		for _, note := range out.Notes {
			fmt.Fprintf(w, "note: %s\n", ui.Clean(note))
		}
		return nil
	})
}
