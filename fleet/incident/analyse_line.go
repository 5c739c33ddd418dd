package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/systemd"
)

const (
	maxText     = 2000 // bytes of a line that is shown
	linesBefore = 300
	linesAfter  = 150
	timeBefore  = 15 * time.Minute
	timeAfter   = 15 * time.Minute
)

// cut shortens a text, at the end of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// gapsOf says why the log is incomplete.
func gapsOf(e *Evidence) []string {
	gaps := slices.Clone(e.Gaps)
	missing, why := 0, ""
	for i := range e.Entries {
		if m := e.Entries[i].Missing; m != "" {
			missing++
			why = m
		}
	}
	if missing > 0 && !slices.ContainsFunc(gaps, func(g string) bool { return strings.Contains(g, why) }) {
		gaps = append(gaps, fmt.Sprintf("%d %s without its text: %s", missing, plural(missing, "entry", "entries"), why))
	}
	if gaps == nil {
		gaps = []string{}
	}
	return gaps
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

var reError = lazyregexp.New(`^(?:\[\d+\] )?\d+\.\d\d\.\d{3}\.\d{3} E |^(?i:error|fatal)\b`)

// lastErrors are the last lines of the run that say of themselves that they are errors. They may be about something
// else.
func (d *downfall) lastErrors() []string {
	const (
		most   = 5
		before = 10 * time.Second
		after  = time.Second // a line may come later than systemd's word
	)
	end := d.At
	if d.ExitedAt != nil {
		end = *d.ExitedAt
	}
	var errors []string
	for i := len(d.run.lines) - 1; i >= 0 && len(errors) < most; i-- {
		e := &d.run.lines[i]
		if d.Child && e.PID != d.PID || e.At.Sub(end) > after || end.Sub(e.At) > before || e.Missing != "" {
			continue
		}
		if text := shown(e.Message); e.Priority > 0 && e.Priority <= 3 || reError().MatchString(e.Message) {
			errors = append(errors, text)
		}
	}
	slices.Reverse(errors)
	return errors
}

// shown is a line as the report has it.
func shown(message string) string { return ui.Clean(cut(strings.TrimRight(message, "\r\n"), maxText)) }

// linesOf are the lines of the journal around the end, those that tell the story marked.
func linesOf(e *Evidence, r *Report) []LogLine {
	lines := []LogLine{}
	if len(e.Entries) == 0 {
		return lines
	}
	from, to := 0, len(e.Entries)
	if r.Ending != nil {
		at := r.Ending.At
		middle := slices.IndexFunc(e.Entries, func(en systemd.Entry) bool { return en.At.Equal(at) })
		if middle < 0 {
			middle, _ = slices.BinarySearchFunc(e.Entries, at, func(e systemd.Entry, t time.Time) int { return e.At.Compare(t) })
		}
		until := at
		if r.Ending.ExitedAt != nil {
			until = later(until, *r.Ending.ExitedAt)
		}
		if r.Restart != nil && r.Restart.ReadyAt != nil {
			until = later(until, *r.Restart.ReadyAt)
		}
		from, to = max(0, middle-linesBefore), min(len(e.Entries), middle+linesAfter)
		for from < middle && at.Sub(e.Entries[from].At) > timeBefore {
			from++
		}
		for to > middle && e.Entries[to-1].At.Sub(until) > timeAfter {
			to--
		}
	} else {
		from = max(0, to-linesBefore)
	}
	story := storyOf(r)
	for i := from; i < to; i++ {
		en := &e.Entries[i]
		text := en.Message
		if systemd.IDCoredump == en.ID { // the stacks are told as a backtrace
			text, _, _ = strings.Cut(text, "\n")
		}
		line := LogLine{At: en.At, From: ui.Clean(cut(en.Identifier, 100)), Text: shown(text), Key: story.tells(en)}
		if en.Missing != "" {
			line.Text = strings.TrimSpace(line.Text + " (" + ui.Clean(en.Missing) + ")")
		}
		lines = append(lines, line)
	}
	return lines
}

// A story knows the lines that tell how it ended.
type story struct {
	r     *Report
	slots map[int]*Slot
}

func storyOf(r *Report) story {
	s := story{r, map[int]*Slot{}}
	for i := range r.Slots {
		s.slots[r.Slots[i].ID] = &r.Slots[i]
	}
	return s
}

func (s story) tells(e *systemd.Entry) bool {
	if m, ok := readMark(*e); ok {
		return m.kind != markResources
	}
	if e.Missing != "" {
		return false
	}
	text := strings.TrimRight(e.Message, "\r\n")
	if back := s.r.Restart; back != nil {
		if back.Host != nil && back.Host.At.Equal(e.At) && reHost().MatchString(text) || back.ReadyAt != nil && back.ReadyAt.Equal(e.At) && reReady().MatchString(text) {
			return true
		}
	}
	if line := shown(text); s.r.Abort != "" && line == s.r.Abort || slices.Contains(s.r.Errors, line) {
		return true
	}
	ev, ok := engine.ParseLogLine(strings.ReplaceAll(text, "\n", " "))
	if !ok {
		return false
	}
	if ev.Kind == engine.LogNaN {
		return slices.ContainsFunc(s.r.Guard, func(g Guard) bool { return g.At.Equal(e.At) && g.Text == shown(e.Message) })
	}
	slot := s.slots[ev.Slot]
	if slot == nil || !near(slot, e.At) {
		return false
	}
	switch ev.Kind {
	case engine.LogSelected:
		return slot.SelectedAt != nil && slot.SelectedAt.Equal(e.At)
	case engine.LogLaunch, engine.LogPrompt, engine.LogTiming, engine.LogGraphs, engine.LogRelease:
		return ev.Task == slot.Task && ev.Phase != engine.PhaseTotal
	}
	return false
}

// near tells whether a line is of the last task of a slot: ids come again in other runs.
func near(slot *Slot, at time.Time) bool {
	if slot.SelectedAt != nil && at.Before(*slot.SelectedAt) || slot.SelectedAt == nil && slot.LaunchedAt != nil && at.Before(*slot.LaunchedAt) {
		return false
	}
	return slot.LaunchedAt != nil && (slot.FinishedAt == nil || at.Sub(*slot.FinishedAt) < time.Second)
}
