package incident

import (
	"fmt"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/ui"
)

// happened tells the end itself.
func (m *page) happened() {
	m.heading("What happened")
	if m.r.Ending != nil {
		m.ending(m.r.Ending)
		m.restart()
	}
	for i, g := range m.r.Guard {
		if i >= 5 {
			m.fact("NaN guard", "%d more lines", len(m.r.Guard)-i)
			break
		}
		m.guard(g)
	}
	if m.r.Abort != "" {
		m.fact("The engine's last words", "%s", code(m.r.Abort))
	}
	for i, text := range m.r.Errors {
		m.fact(fmt.Sprintf("Error %d of the last in its log", i+1), "%s", code(text))
	}
	if len(m.r.Trace) > 0 {
		m.fact("Backtrace", "%s", code(shortTrace(m.r.Trace)))
	}
	m.blank()
	m.story()
}

func (m *page) ending(e *Ending) {
	how := ""
	switch {
	case e.Status != nil:
		how = fmt.Sprintf(", exit status %d", *e.Status)
	case e.Signal != "":
		how = fmt.Sprintf(", %s by %s", escape(orNone(e.Code)), escape(e.Signal))
	}
	if e.Result != "" {
		how += ", result " + code(e.Result)
	}
	if e.PID != 0 {
		how += fmt.Sprintf("; the log is of process %d", e.PID)
	}
	if e.Before != nil {
		m.fact("Died", "between %s, its last sign of life, and %s%s", m.clock.time(e.At), m.clock.time(*e.Before), how)
	} else {
		m.fact("Died", "%s%s", m.clock.time(e.At), how)
	}
	if e.ExitedAt != nil && !e.ExitedAt.Equal(e.At) {
		m.fact("Exited", "%s, as systemd saw the main process, %s after that", m.clock.time(*e.ExitedAt), length(e.ExitedAt.Sub(e.At).Seconds()))
	}
	m.fact("Cause", "%s", escape(e.Cause))
	m.uptime(e)
	if e.Invocation != "" {
		m.fact("Run", "invocation %s", code(e.Invocation))
	}
}

func (m *page) uptime(e *Ending) {
	var parts []string
	if e.UptimeS != nil {
		least := ""
		if e.Before != nil {
			least = "at least "
		}
		parts = append(parts, least+length(*e.UptimeS))
	}
	if e.StartedAt != nil {
		parts = append(parts, "started "+m.clock.time(*e.StartedAt))
	}
	if e.LogUptimeS != nil {
		parts = append(parts, "the log's own clock stood at "+length(*e.LogUptimeS))
	}
	if e.CPUS != nil {
		parts = append(parts, length(*e.CPUS)+" of CPU time")
	}
	if len(parts) > 0 {
		m.fact("Uptime", "%s", strings.Join(parts, "; "))
	}
}

func (m *page) restart() {
	b := m.r.Restart
	if b == nil {
		return
	}
	var parts []string
	if b.Counter != nil {
		parts = append(parts, fmt.Sprintf("restart counter %d", *b.Counter))
	}
	if b.ScheduledAt != nil {
		parts = append(parts, "scheduled "+m.clock.time(*b.ScheduledAt))
	}
	if b.StartedAt != nil {
		parts = append(parts, "started "+m.clock.short(*b.StartedAt))
	}
	if b.ReadyAt != nil {
		parts = append(parts, "ready "+m.clock.short(*b.ReadyAt))
	}
	if b.GaveUp != "" {
		parts = append(parts, "systemd gave up: "+escape(b.GaveUp))
	}
	m.fact("Restart", "%s", strings.Join(parts, "; "))
	if h := b.Host; h != nil {
		m.fact("Memory when it came back", "%s, as the service logged it at %s", memoryText(h.GTTFreeGiB, h.GTTTotalGiB, h.MemAvailableGiB), m.clock.short(h.At))
	}
}

// memoryText writes GTT 95.1 of 120.0 GiB free, MemAvailable 84.7 GiB.
func memoryText(free, total, available *float64) string {
	var parts []string
	if free != nil && total != nil {
		parts = append(parts, fmt.Sprintf("GTT %.1f of %.1f GiB free", *free, *total))
	}
	if available != nil {
		parts = append(parts, fmt.Sprintf("MemAvailable %.1f GiB", *available))
	}
	if len(parts) == 0 {
		return "not told"
	}
	return strings.Join(parts, ", ")
}

func (m *page) guard(g Guard) {
	on := ""
	if g.Slot != nil && g.Task != nil {
		on = fmt.Sprintf(", on slot %d, task %d", *g.Slot, *g.Task)
	}
	what := guardCount(g)
	if g.Of > 0 {
		contiguous := "not contiguous"
		if g.Contiguous {
			contiguous = "contiguous"
		}
		what = fmt.Sprintf("%d of %d logits are NaN, index range %d to %d, %s", g.Count, g.Of, g.First, g.Last, contiguous)
	}
	goes := "not continuing"
	if g.Continuing {
		goes = "continuing"
	}
	m.fact("NaN guard", "%s, %s%s, at %s", what, goes, on, m.clock.time(g.At))
	if g.Whole && g.Contiguous {
		m.line("  Every logit was NaN: not one lane or one row, but the output of the request as a whole.")
	}
}

// story shows the lines that tell it.
func (m *page) story() {
	var lines []string
	for _, l := range m.r.Lines {
		if l.Key {
			lines = append(lines, m.logLine(l))
		}
	}
	const most = 60
	if n := len(lines) - most; n > 0 {
		lines = slices.Concat(lines[:most/2], []string{fmt.Sprintf("… %d more lines", n)}, lines[len(lines)-most/2:])
	}
	if len(lines) > 0 {
		m.line("The lines that tell it, by the journal's clock (%s):", escape(m.clock.name(m.r.Lines[0].At)))
		m.blank()
		m.fence(lines)
	}
}

// logLine writes one line of the journal, marked where it is one of the story.
func (m *page) logLine(l LogLine) string {
	const most = 400
	return fmt.Sprintf("%s %s: %s", m.clock.short(l.At), ui.Clean(l.From), cut(ui.Clean(l.Text), most))
}

// slots tells what each slot was doing.
func (m *page) slots() {
	m.heading("What the slots were doing")
	if s := m.r.Server; s != nil {
		m.server(s)
	}
	if len(m.r.Slots) == 0 {
		m.line("The log tells of no slot.")
		m.blank()
		return
	}
	var rows [][]string
	for _, s := range m.r.Slots {
		if s.Task < 0 {
			state := "never used"
			if s.State == SlotUnseen {
				state = "no task seen"
			}
			rows = append(rows, []string{fmt.Sprint(s.ID), "–", state, "–", "–", "–", "–", "–", "–", "–"})
			continue
		}
		ended := "–"
		if s.FinishedAt != nil {
			ended = m.clock.short(*s.FinishedAt)
		}
		launched := "–"
		if s.LaunchedAt != nil {
			launched = m.clock.short(*s.LaunchedAt)
		}
		reused := "–"
		if s.GraphsReused != nil {
			reused = fmt.Sprint(*s.GraphsReused)
		}
		rows = append(rows, []string{fmt.Sprint(s.ID), fmt.Sprint(s.Task), strings.ReplaceAll(s.State, SlotUnseen, "end not seen"), selection(s), launched, ended,
			count(s.PromptTokens), count(s.Tokens), reused, fmt.Sprint(s.Tasks)})
	}
	m.table([]string{"slot", "task", "state", "selected by", "launched", "ended", "prompt tokens", "generated", "graphs reused", "tasks"}, rows)
	for _, s := range m.r.Slots {
		m.slot(s)
	}
	m.blank()
}

func (m *page) server(s *Server) {
	var parts []string
	if s.Slots > 0 {
		parts = append(parts, fmt.Sprintf("`--parallel %d`", s.Slots))
	}
	if s.Context > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens of context a slot", s.Context))
	}
	if s.KVUnified {
		parts = append(parts, "one KV cache for all slots")
	}
	if len(s.Devices) > 0 {
		var names []string
		for _, d := range s.Devices {
			names = append(names, code(d))
		}
		parts = append(parts, "on "+strings.Join(names, ", "))
	}
	parts = append(parts, fmt.Sprintf("%d %s in this run that the log has", s.Tasks, plural(s.Tasks, "task", "tasks")))
	m.line("The server: %s.", strings.Join(parts, ", "))
	m.blank()
}

// slot says what stands out about a slot.
func (m *page) slot(s Slot) {
	switch {
	case s.State == SlotRunning && s.NeverUsed:
		why := ""
		if s.Selected == engine.SelectedLRU {
			why = ", `t_last = -1`"
		}
		m.line("- Slot %d was at task %d, its first: selected by %s%s, so it had never been used in this process.", s.ID, s.Task, selection(s), why)
	case s.State == SlotRunning:
		m.line("- Slot %d was at task %d (selected by %s), its task number %d in this run.", s.ID, s.Task, selection(s), s.Tasks)
	case s.State == SlotFinished && s.BeforeS != nil && *s.BeforeS >= 0 && *s.BeforeS < 60:
		reused := ""
		if s.GraphsReused != nil {
			reused = fmt.Sprintf(", with %d graphs reused", *s.GraphsReused)
		}
		m.line("- Slot %d had finished task %d %s before (%d prompt tokens, %d generated%s).", s.ID, s.Task, length(*s.BeforeS), s.PromptTokens, s.Tokens, reused)
	}
}

func selection(s Slot) string {
	switch {
	case s.Selected == engine.SelectedLCP && s.Similarity != nil:
		return fmt.Sprintf("LCP similarity %.3f", *s.Similarity)
	case s.Selected == engine.SelectedLCP:
		return "LCP similarity"
	case s.Selected == engine.SelectedLRU && s.NeverUsed:
		return "LRU (never used)"
	case s.Selected == engine.SelectedLRU:
		return "LRU"
	case s.Selected == engine.SelectedID:
		return "the request"
	}
	return "not told"
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
