package cmd

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/ui"
)

// showOutcome prints what is true of the service after an act. An act that failed and changed nothing prints
// nothing; one after which the service went back says where it is now, and why. An empty sentence means the one
// that fits the outcome.
func (a *app) showOutcome(o *fleet.Outcome, failed error, sentence string) error {
	a.line.Clear()
	if o == nil || failed != nil && !o.Returned {
		a.noteFailed(o)
		return failed
	}
	err := a.show(o, func(w io.Writer) error {
		fmt.Fprintln(w, or(sentence, outcomeSentence(o)))
		a.note(w, o.Notes)
		return nil
	})
	return errors.Join(failed, err)
}

func outcomeSentence(o *fleet.Outcome) string {
	to := or(o.To, "what its owner's own files say")
	switch {
	case o.Returned:
		return fmt.Sprintf("%s went back to %s", o.Unit, to)
	case o.Restarted && o.Unchecked != "":
		return fmt.Sprintf("%s runs %s and stays up; its answers were not checked: %s", o.Unit, to, o.Unchecked)
	case o.Restarted:
		return fmt.Sprintf("%s runs %s: it answers as it should", o.Unit, to)
	case o.DryRun && o.From != o.To:
		return fmt.Sprintf("%s would be armed with %s; it is armed with %s and stays so", o.Unit, to, or(o.From, "no package"))
	case !o.Changed:
		return fmt.Sprintf("%s stays on %s: nothing was changed", o.Unit, to)
	case !o.Loaded:
		return fmt.Sprintf("%s: %s is written, not loaded: systemd could not be reached", o.Unit, to)
	case o.RestartPending:
		return fmt.Sprintf("%s is armed with %s and still runs %s until its next start: 1bit pkg restart %s",
			o.Unit, to, liveText(o.Live), o.Unit)
	}
	return fmt.Sprintf("%s is armed with %s", o.Unit, to)
}

// noteFailed prints what people should know of an act that failed half-way, such as what else went down with it.
func (a *app) noteFailed(o *fleet.Outcome) {
	if o == nil || a.json() {
		return
	}
	a.note(a.stderr, o.Notes)
}

// note prints what people should know, less what they have read above a question.
func (a *app) note(w io.Writer, notes []string) {
	for _, note := range notes {
		if !slices.Contains(a.told, note) {
			fmt.Fprintf(w, "note: %s\n", ui.Clean(note))
		}
	}
}
