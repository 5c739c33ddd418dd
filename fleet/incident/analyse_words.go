package incident

import (
	"fmt"
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
)

// maxTitle bounds a title, in bytes.
const maxTitle = 160

// titleOf is one line that names the end to people.
func titleOf(r *Report, d *downfall) string {
	title := ui.Clean(r.Unit)
	switch what := r.what(d); {
	case what != "":
		title += ": " + what
	case r.Ending == nil && len(r.Evidence.Entries) == 0:
		title += ": no end is known, for its journal is empty"
	default:
		title += ": no bad end"
	}
	if p := r.Evidence.Package; p != nil && r.what(d) != "" {
		title += ", " + ui.Clean(p.Name)
	}
	return cut(title, maxTitle)
}

// what says in a few words what happened, "" if nothing did.
func (r *Report) what(d *downfall) string {
	if n := len(r.Guard); n > 0 && (d == nil || d.server != nil && d.server.nan()) {
		g := r.Guard[n-1]
		return guardCount(g) + r.guardSlot(g)
	}
	switch {
	case d == nil:
		return ""
	case d.stray:
		return fmt.Sprintf("one of its processes ended and the main process went on (%s)", shortCause(d))
	case d.Child:
		return fmt.Sprintf("its server ended and the main process went on (%s)", shortCause(d))
	case d.Cause == hostDown:
		return "the host went down under it"
	}
	if d.Status != nil && d.abort == "" {
		return "ended with " + shortCause(d)
	}
	return "ended by " + shortCause(d)
}

// shortCause is a cause up to where it is explained.
func shortCause(d *downfall) string {
	how := d.Cause
	switch {
	case d.abort != "":
		how = "an abort of the engine"
	case d.core != nil && d.core.name != "":
		how = d.core.name
	case d.Signal != "" && (d.Child || strings.HasPrefix(d.Cause, "a crash")):
		how = d.Signal
	case d.Child && len(d.words) > 0:
		how = strings.Join(d.words, ", ")
	case d.Child && d.Signal == "":
		how = "it said nothing"
	}
	how, _, _ = strings.Cut(how, ";")
	how, _, _ = strings.Cut(how, ":")
	how, _, _ = strings.Cut(how, ", which")
	if d.Status != nil && d.abort == "" {
		how = fmt.Sprintf("exit status %d", *d.Status)
	}
	if d.run.mark(markStartLimit) != nil {
		how += ", again and again until systemd gave up (start limit)"
	}
	return how
}

// guardCount says how many logits were NaN.
func guardCount(g Guard) string {
	switch {
	case g.Whole:
		return fmt.Sprintf("NaN in all %d logits", g.Of)
	case g.Generation == 1:
		return fmt.Sprintf("NaN logits, the first at index %d", g.First)
	case g.Of > 0:
		return fmt.Sprintf("NaN in %d of %d logits", g.Count, g.Of)
	}
	return "NaN logits"
}

func (r *Report) guardSlot(g Guard) string {
	if g.Slot == nil || g.Task == nil {
		return ""
	}
	if s := r.guarded(g); s != nil && s.NeverUsed {
		return fmt.Sprintf(" on a never-used slot (slot %d, task %d)", *g.Slot, *g.Task)
	}
	return fmt.Sprintf(" on slot %d, task %d", *g.Slot, *g.Task)
}

// summaryOf is what the report says, in one or two sentences.
func summaryOf(r *Report, d *downfall) string {
	c := r.clock()
	unit := ui.Clean(r.Unit)
	if r.Evidence.Host != "" {
		unit += " on " + ui.Clean(r.Evidence.Host)
	}
	if d == nil {
		return noEnd(r, unit, c)
	}
	var b strings.Builder
	switch {
	case d.stray:
		b.WriteString("A process of ")
	case d.Child:
		b.WriteString("The server of ")
	}
	if d.Before != nil {
		fmt.Fprintf(&b, "%s ended between %s, its last sign of life, and %s", unit, c.time(d.At), c.time(*d.Before))
	} else {
		fmt.Fprintf(&b, "%s ended at %s", unit, c.time(d.At))
	}
	if what := r.what(d); len(r.Guard) > 0 && d.server != nil && d.server.nan() {
		fmt.Fprintf(&b, " with %s", what)
	}
	if d.UptimeS != nil {
		least := ""
		if d.Before != nil {
			least = "at least "
		}
		fmt.Fprintf(&b, ", after %s%s", least, length(*d.UptimeS))
	}
	fmt.Fprintf(&b, ". Cause: %s.", d.Cause)
	if k := r.gpuFault(); k != nil {
		fmt.Fprintf(&b, " The kernel's log blames it for a fault of the GPU (%s).", k.Kind)
	}
	switch back := r.Restart; {
	case back == nil:
	case back.GaveUp != "":
		fmt.Fprintf(&b, " It is not started again: %s.", back.GaveUp)
	case back.Counter != nil:
		fmt.Fprintf(&b, " systemd restarted it, restart counter %d.", *back.Counter)
	}
	for _, run := range r.Evidence.Runs {
		if run.spans(d.At) {
			fmt.Fprintf(&b, " CI run %d (%s) was under way.", run.ID, ui.Clean(cut(run.Workflow, 100)))
			break
		}
	}
	return b.String()
}

// noEnd says what is known of a unit that did not end badly.
func noEnd(r *Report, unit string, c clock) string {
	switch n := len(r.Guard); {
	case n > 0:
		return fmt.Sprintf("%s has not ended badly, but its NaN guard spoke %d %s and the server went on, the last time at %s: %s%s.",
			unit, n, plural(n, "time", "times"), c.time(r.Guard[n-1].At), guardCount(r.Guard[n-1]), r.guardSlot(r.Guard[n-1]))
	case len(r.Evidence.Entries) == 0:
		return fmt.Sprintf("Nothing is known of an end of %s: the journal has no entry of it, and systemd tells of no bad one.", unit)
	}
	first, last := r.Evidence.Entries[0].At, r.Evidence.Entries[len(r.Evidence.Entries)-1].At
	return fmt.Sprintf("%s has not ended badly between %s and %s, as far as its journal tells. A stop that was asked for is no bad end.", unit, c.time(first), c.time(last))
}
