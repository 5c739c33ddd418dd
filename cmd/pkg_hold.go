package cmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/fleet"
)

func newPkgHoldCommand(a *app) *cobra.Command {
	var reason, until string
	c := &cobra.Command{
		Use: "hold UNIT --reason TEXT", Short: "Keep a service on the package that it is armed with", Args: between(1, 1),
		ValidArgsFunction: a.completeUnits,
		Long: `Keep a service where it is, with a reason that everybody sees who tries to move it. switch and
adopt are refused until the hold is lifted or ends, and so is a restart that would change what
runs. A rollback ignores it: the way back is never closed.

--until takes a day (2026-12-24: until it begins, local time), a time as in
2026-12-24T18:00:00Z, or a span from now (72h). A hold that is there already is replaced,
for which the owner is asked.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usagef("a hold needs a reason: --reason TEXT")
			}
			end, err := parseUntil(until, a.now())
			if err != nil {
				return err
			}
			o, err := a.host().Hold(cmd.Context(), args[0], reason, end)
			return a.showOutcome(o, err, heldSentence(o))
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever tries to move it")
	c.Flags().StringVar(&until, "until", "", "when the hold ends by itself: 2026-12-24, a time, or 72h")
	return c
}

func newPkgUnholdCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unhold UNIT", Short: "Lift the hold of a service", Args: between(1, 1), ValidArgsFunction: a.completeUnits,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.host().Unhold(cmd.Context(), args[0])
			sentence := ""
			if o != nil {
				sentence = fmt.Sprintf("%s is no longer held", o.Unit)
			}
			return a.showOutcome(o, err, sentence)
		},
	}
}

func heldSentence(o *fleet.Outcome) string {
	if o == nil || o.Held == nil {
		return ""
	}
	until := "until 1bit pkg unhold " + o.Unit
	if o.Held.Until != nil {
		until = "until " + o.Held.Until.Local().Format("2006-01-02 15:04")
	}
	on := "where it is"
	if o.Armed != nil {
		on = "on " + o.Armed.Package
	}
	return fmt.Sprintf("%s is held %s %s: %s", o.Unit, on, until, o.Held.Reason)
}

// ownerNotes says of a service what waits for its owner, or what he has forbidden.
func ownerNotes(s fleet.Service) []string {
	var notes []string
	if p := s.Proposed; p != nil {
		why := ""
		if p.Reason != "" {
			why = ": " + p.Reason
		}
		notes = append(notes, fmt.Sprintf("%s is proposed by %s (as claimed) since %s%s; 1bit pkg switch %s takes it",
			p.Package, p.By, p.At.Local().Format("2006-01-02 15:04"), why, s.Unit))
	}
	if h := s.Held; h != nil {
		until := ""
		if h.Until != nil {
			until = " until " + h.Until.Local().Format("2006-01-02 15:04")
		}
		notes = append(notes, fmt.Sprintf("held%s by %s: %s", until, or(h.By, "somebody"), h.Reason))
	}
	return notes
}

// parseUntil reads when something ends: "" is never and gives the zero time.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		end, err = time.ParseInLocation(time.DateOnly, text, now.Location())
	}
	if err != nil {
		var span time.Duration
		if span, err = time.ParseDuration(text); err == nil {
			end = now.Add(span)
		}
	}
	switch {
	case err != nil:
		return end, usagef("--until is %q: it is a day (2026-12-24), a time (2026-12-24T18:00:00Z) or a span (72h)", text)
	case !now.Before(end):
		return end, usagef("--until is %q, and that is past", text)
	}
	return end, nil
}
