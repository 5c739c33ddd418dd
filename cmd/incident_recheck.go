package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/ui"
)

type incidentRecheckOptions struct {
	acceptRunOptions
	write, model string
}

func newIncidentRecheckCommand(a *app) *cobra.Command {
	var opts incidentRecheckOptions
	c := &cobra.Command{
		Use:   "recheck FILE (--package ID [--evidence DIR] [--detach] | --write PLAN)",
		Short: "Soak a package in the shape of an incident",
		Long: `Make an acceptance plan of the shape of an incident (same model, slots, context, options,
lengths of prompts and answers, and neighbour) and run it as "1bit accept run" does. FILE is
an incident's folder, its incident.json, or - for that on standard input. Many short lives
have first tasks on slots that were never used; where the incident came late a long life is
made too. Each choice and its reason stands in the plan.

--write PLAN writes the plan and runs nothing: read and change it, then "1bit accept run".
Secrets that the incident masks, and variables that lead to files of its host, are not in the
plan: what may have to be added is said. The options are the incident's: of a report that is
not yours read the plan before it runs.
--model names the model's file where it is not where the incident had it.`,
		Example: "  1bit incident recheck ~/.local/state/1bit/incidents/20261023T104518Z-1bit-canonical.service --package 4f2c1aa --detach",
		Args:    between(1, 1), ValidArgsFunction: a.completeIncidents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runIncidentRecheck(cmd.Context(), args[0], opts)
		},
	}
	opts.addFlags(a, c)
	c.Flags().Lookup("package").Usage = "package to soak"
	c.Flags().StringVar(&opts.write, "write", "", "write the plan to this file, which must not be there, and run nothing")
	c.Flags().StringVar(&opts.model, "model", "", "the model's file, where it is not the incident's")
	return c
}

func (a *app) runIncidentRecheck(ctx context.Context, file string, opts incidentRecheckOptions) error {
	switch {
	case opts.write == "" && opts.pkg == "":
		return usagef("--package is missing: name the installed package to soak, or --write the plan alone")
	case opts.write != "" && (opts.pkg != "" || opts.evidence != "" || opts.detach):
		return usagef("--write writes the plan and runs nothing: leave --package, --evidence and --detach to 1bit accept run")
	}
	r, err := a.readIncident(ctx, file)
	if err != nil {
		return err
	}
	if opts.model != "" {
		if opts.model, err = filepath.Abs(opts.model); err != nil {
			return fmt.Errorf("find the model: %w", err)
		}
	}
	text, notes, err := incident.Plan(r, opts.model)
	if err != nil {
		return err
	}
	if opts.write != "" {
		if _, err := os.Lstat(opts.write); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write %s: it is there already: name another file", opts.write)
		}
		if err := atomicfile.Write(opts.write, text, 0o644); err != nil {
			return err
		}
		if !a.json() {
			a.noteAll(notes)
		}
		return a.show(map[string]any{"path": opts.write, "notes": append([]string{}, notes...)}, say("%s", opts.write))
	}
	plan, err := acceptance.ParsePlan(text)
	if err != nil {
		return err
	}
	if _, err := a.soaked(ctx, opts.pkg); err != nil {
		return err
	}
	path, err := keepPlan(filepath.Join(a.config.StateHome, "plans"), plan.Name, text)
	if err != nil {
		return err
	}
	a.noteAll(notes)
	if !a.json() {
		fmt.Fprintf(a.stderr, "the plan is %s\n", path)
	}
	return a.runAcceptRun(ctx, path, opts.acceptRunOptions)
}

// keepPlan writes a plan into a folder. One of that name which is another, as of one that somebody has changed, stays.
func keepPlan(dir, name string, text []byte) (path string, err error) {
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		if path = filepath.Join(dir, name+".yaml"); n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", name, n))
		}
		there, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, atomicfile.Write(path, text, 0o644)
		case err != nil:
			return "", fmt.Errorf("look at the plan that is there: %w", err)
		case bytes.Equal(there, text):
			return path, nil
		}
	}
}

// noteAll says notes on standard error.
func (a *app) noteAll(notes []string) {
	for _, note := range notes {
		fmt.Fprintf(a.stderr, "note: %s\n", ui.Clean(note))
	}
}

// mostIncident bounds the size of a report in bytes.
const mostIncident = 64 << 20

// readIncident reads a report: of a folder, whose evidence is looked at anew, of a file, or of standard input. What gives
// nothing, such as a terminal, is left to itself when ctx ends.
func (a *app) readIncident(ctx context.Context, file string) (*incident.Report, error) {
	type answer struct {
		r   *incident.Report
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := a.readReport(file)
		done <- answer{r, err}
	}()
	select {
	case got := <-done:
		return got.r, got.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read the incident: %w", ctx.Err())
	}
}

func (a *app) readReport(file string) (*incident.Report, error) {
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the incident: %w", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			e, err := incident.Read(file)
			if err != nil {
				return nil, err
			}
			return incident.Analyse(e), nil
		}
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, mostIncident+1))
	if err != nil {
		return nil, fmt.Errorf("read the incident: %w", err)
	}
	r := &incident.Report{}
	switch err := json.Unmarshal(raw, r); {
	case len(raw) > mostIncident:
		return nil, usagef("read the incident: %s has more than %d bytes", file, mostIncident)
	case err != nil:
		return nil, usagef("read the incident: %s is none: %v: name an incident's folder or its incident.json", file, err)
	case r.Schema != incident.Schema || r.Unit == "":
		return nil, usagef("read the incident: %s is none that this program knows (schema %d, it knows %d)", file, r.Schema, incident.Schema)
	}
	return r, nil
}
