package incident

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
)

// pkg tells of the package that the service ran from.
func (m *page) pkg() {
	m.heading("Package")
	e := m.r.Evidence
	p := e.Package
	if p == nil {
		m.line("Which package it ran from is not known.")
		m.blank()
		return
	}
	m.fact("Ran from", "%s%s", code(strings.TrimSpace(p.Name+" "+p.Version)), howKnown(e.How))
	if p.Path != "" {
		when := ""
		if !p.InstalledAt.IsZero() {
			when = ", installed " + m.clock.time(p.InstalledAt)
		}
		m.fact("Folder", "%s%s", code(p.Path), when)
	}
	if p.Digest != "" {
		m.fact("Digest", "%s", code(p.Digest))
	}
	var pins []string
	for _, key := range slices.Sorted(maps.Keys(p.Pins)) {
		pins = append(pins, key+" "+p.Pins[key])
	}
	if len(pins) > 0 {
		m.fact("Pins", "%s", codes(pins))
	}
	m.fixes("Fixes carried", p.Carried)
	m.fixes("Fixes missing", p.Missing)
	m.fixes("Fixes of which it is not known", p.Unknown)
	for _, n := range e.Newer {
		more := "which carries no fix more"
		if len(n.Gained) > 0 {
			more = "which also carries " + codes(n.Gained)
		}
		m.fact("Newer here", "%s, %s", code(strings.TrimSpace(n.Name+" "+n.Version)), more)
	}
	if len(e.Newer) == 0 {
		m.fact("Newer here", "no newer package is installed")
	}
	m.blank()
}

func (m *page) fixes(name string, ids []string) {
	if len(ids) > 0 {
		m.fact(name, "%s", codes(ids))
	}
}

func codes(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

// howKnown says where the name of the package is from.
func howKnown(how string) string {
	switch how {
	case "live":
		return ", as the processes that run since before the end show"
	case "history":
		return ", as the history of its restarts has it"
	case "armed":
		return ", which is what its unit names now: that it was so at the end is not proved"
	case "log":
		return ", as its own log names it"
	case "":
		return ""
	}
	return " (" + escape(how) + ")"
}

// unit shows how the service is started.
func (m *page) unit() {
	m.heading("Unit")
	e := m.r.Evidence
	s := e.State
	if len(e.Command) > 0 {
		m.fact("Command", "%s", code(strings.Join(e.Command, " ")))
	}
	var words []string
	for _, w := range []struct{ name, value string }{{"Type", s.Type}, {"Restart", s.Restart}} {
		if w.value != "" {
			words = append(words, code(w.name+"="+w.value))
		}
	}
	if s.MemoryMax != nil {
		words = append(words, code("MemoryMax="+memory(*s.MemoryMax)))
	}
	if s.Active != "" {
		words = append(words, "now "+escape(s.Active)+" ("+escape(s.Sub)+")", fmt.Sprintf("automatic restarts %d", s.Restarts))
	}
	if len(words) > 0 {
		m.fact("State", "%s", strings.Join(words, ", "))
	}
	if s.MemoryPeak != nil {
		m.fact("Memory peak", "%s, which leaves out what the GPU has", ui.Size(*s.MemoryPeak))
	}
	for _, v := range e.Settings {
		m.fact("Variable", "%s, set by %s", code(v.Key+"="+v.Value), code(fmt.Sprintf("%s:%d", v.File, v.Line)))
	}
	m.blank()
	for _, f := range e.Files {
		masked := ""
		if f.Masked > 0 {
			masked = fmt.Sprintf(" (%d %s masked)", f.Masked, plural(f.Masked, "value", "values"))
		}
		m.line("%s%s:", code(f.Path), masked)
		m.blank()
		m.fence(strings.Split(strings.TrimRight(cleanLines(f.Text), "\n"), "\n"))
	}
}

// log shows the journal around the end.
func (m *page) log() {
	m.heading("Log")
	if m.r.Complete {
		m.line("The log is complete as far as the journal tells.")
		m.blank()
	} else {
		m.line("**The log is incomplete:**")
		m.blank()
		for _, g := range m.r.Gaps {
			m.line("- %s", escape(g))
		}
		m.blank()
	}
	if len(m.r.Lines) == 0 {
		m.line("The journal has no line of this unit.")
		m.blank()
		return
	}
	const before, after = 80, 60
	lines, from, to := m.r.Lines, 0, len(m.r.Lines)
	if m.r.Ending != nil {
		middle := slices.IndexFunc(lines, func(l LogLine) bool { return !l.At.Before(m.r.Ending.At) })
		if middle < 0 {
			middle = len(lines)
		}
		from, to = max(0, middle-before), min(len(lines), middle+after)
	} else {
		from = max(0, to-before-after)
	}
	m.line("<details><summary>The journal around it, %d lines from %s (the marked ones tell the story)</summary>", to-from, escape(m.clock.time(lines[from].At)))
	m.blank()
	var out []string
	for _, l := range lines[from:to] {
		mark := "  "
		if l.Key {
			mark = "> "
		}
		out = append(out, mark+m.logLine(l))
	}
	m.fence(out)
	m.line("</details>")
	m.blank()
}

// earlier tells whether this has happened before.
func (m *page) earlier() {
	m.heading("Earlier")
	e := m.r.Evidence
	same, others := 0, 0
	var rows [][]string
	for _, i := range slices.Backward(e.Earlier) {
		if i.Signature != m.r.Signature || m.r.Signature == "" {
			others++
			continue
		}
		if same++; same <= maxRows {
			rows = append(rows, []string{m.clock.time(i.At), code(i.Unit), code(i.Package), code(i.Folder)})
		}
	}
	if same > 0 {
		m.line("%d earlier %s of the same signature on this host:", same, plural(same, "incident", "incidents"))
		m.blank()
		m.table([]string{"at", "unit", "package", "folder"}, rows)
		m.more(same)
	} else if others > 0 {
		m.line("No earlier incident of this signature is on record on this host; %d of other signatures %s.", others, plural(others, "is", "are"))
		m.blank()
	} else {
		m.line("No earlier incident is on record on this host.")
		m.blank()
	}
	if n := m.r.Evidence.Ends; n > 1 {
		m.line("The watch counted %d bad ends, which this report is of.", n)
		m.blank()
	}
	if n, known := len(m.r.Others), max(len(m.r.Others), m.r.Known); n > 0 {
		latest := ""
		if listed := min(n, maxRows); listed < known {
			latest = fmt.Sprintf(", of which these are the latest %d", listed)
		}
		m.line("The journal that was read has %d other bad %s of this unit%s:", known, plural(known, "end", "ends"), latest)
		m.blank()
		var rows [][]string
		for _, o := range m.r.Others[max(0, n-maxRows):] {
			up := "–"
			if o.UptimeS != nil {
				up = length(*o.UptimeS)
			}
			rows = append(rows, []string{m.clock.time(o.At), escape(o.Cause), up})
		}
		m.table([]string{"at", "cause", "uptime"}, rows)
	}
}
