package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet/doctor"
	"github.com/1bit-systems/pkg/internal/ui"
)

type doctorOptions struct {
	list    bool
	verbose bool
}

func (o *doctorOptions) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.list, "list", false, "list the checks, each with its reason and its remedy, and look at nothing")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also a line for every check that found nothing")
}

func newDoctorCommand(a *app) *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use: "doctor", Short: "Show everything about this host that would bite, each with its remedy", Args: between(0, 0),
		Long: `Look for everything about this host that would bite the owner of a service: before the service
dies of it, and before a switch or a reboot does not do what it should. Every finding says
where it is, why it bites and what to do about it. A check that could not look says so.

Nothing is changed and nothing is restarted. The exit status is 1 if anything was found.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), o) },
	}
	o.addFlags(c)
	return c
}

func (a *app) runDoctor(ctx context.Context, o doctorOptions) error {
	if o.list {
		return a.listChecks()
	}
	lock, floor, err := a.claims()
	if err != nil {
		return err
	}
	hosts, unseen := a.hosts()
	r, err := doctor.Run(ctx, doctor.Options{
		Hosts: hosts, Unseen: unseen,
		UID: a.uid, User: a.user, Now: a.now(),
		RuntimeDir: a.getenv("XDG_RUNTIME_DIR"), BusAddress: a.getenv("DBUS_SESSION_BUS_ADDRESS"),
		Policy: doctor.Policy{File: a.config.policyFile, Restart: a.config.Restart},
		Claim:  lock, ClaimFloorGiB: floor,
	})
	if err != nil {
		return err
	}
	if err := a.show(r, func(w io.Writer) error { return writeDiagnosis(w, r, o.verbose) }); err != nil {
		return err
	}
	if len(r.Findings) > 0 {
		return statusError(exitFailed)
	}
	return nil
}

// writeDiagnosis writes the findings by check, how the policy is enforced, and one sentence at the end.
func writeDiagnosis(w io.Writer, r *doctor.Result, verbose bool) error {
	unknown, whys, blind := 0, []string(nil), map[string][]string{}
	for _, c := range r.Checks {
		switch {
		case c.State == doctor.StateFound:
			writeFindings(w, c, r.Findings)
		case c.State == doctor.StateUnknown:
			unknown++
			if blind[c.Why] == nil {
				whys = append(whys, c.Why)
			}
			blind[c.Why] = append(blind[c.Why], c.Name)
		case verbose:
			fmt.Fprintf(w, "%s: ok\n", c.Name)
		}
	}
	for _, why := range whys {
		if verbose {
			fmt.Fprintf(w, "%s: unknown: %s\n", join(blind[why]), ui.Clean(why))
		}
	}
	if len(r.Findings) > 0 || verbose {
		for i, line := range r.Policy {
			if i == 0 {
				fmt.Fprintln(w, "policy")
			}
			fmt.Fprintf(w, "  %s\n", ui.Clean(line))
		}
		if len(r.Policy) > 0 {
			fmt.Fprintln(w)
		}
	}
	missing := ""
	if unknown > 0 {
		missing = fmt.Sprintf("; %s could not look everywhere", plural(unknown, "check"))
		if !verbose {
			missing += " (-v says why)"
		}
	}
	if len(r.Findings) > 0 {
		_, err := fmt.Fprintf(w, "%s would bite%s\n", plural(len(r.Findings), "thing"), missing)
		return err
	}
	_, err := fmt.Fprintf(w, "nothing of what %s looked for was found%s\n", plural(len(r.Checks), "check"), missing)
	return err
}

// writeFindings writes those of one check. A remedy that all share is said once.
func writeFindings(w io.Writer, c doctor.CheckResult, all []doctor.Finding) {
	var found []doctor.Finding
	for _, f := range all {
		if f.Check == c.Name {
			found = append(found, f)
		}
	}
	fmt.Fprintf(w, "%s: %s\n", c.Name, ui.Clean(found[0].Reason))
	for i, f := range found {
		where := ""
		if f.Where != "" {
			where = f.Where + ": "
		}
		fmt.Fprintf(w, "  %s\n", ui.Clean(where+f.What))
		if i == len(found)-1 || found[i+1].Remedy != f.Remedy {
			fmt.Fprintf(w, "    → %s\n", ui.Clean(f.Remedy))
		}
	}
	if c.Why != "" {
		fmt.Fprintf(w, "  not everything could be looked at: %s\n", ui.Clean(c.Why))
	}
	fmt.Fprintln(w)
}

// listedCheck is a check as --list prints it.
type listedCheck struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

func (a *app) listChecks() error {
	checks := []listedCheck{}
	for _, c := range doctor.Checks() {
		checks = append(checks, listedCheck{c.Name, c.Reason, c.Remedy})
	}
	doc := struct {
		Checks []listedCheck `json:"checks"`
	}{checks}
	return a.show(doc, func(w io.Writer) error {
		for _, c := range checks {
			fmt.Fprintf(w, "%s\n  %s\n  → %s\n", c.Name, c.Reason, c.Remedy)
		}
		_, err := fmt.Fprintf(w, "%s\n", plural(len(checks), "check"))
		return err
	})
}
