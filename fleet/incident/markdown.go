package incident

import (
	"fmt"
	"strings"
)

// Markdown is the report as an issue takes it: GitHub-flavoured, the facts first. Everything that came from elsewhere is
// escaped, or stands as code: it can neither end its place, nor call people, nor steer a terminal.
func (r *Report) Markdown() string {
	m := &page{r: r, clock: r.clock()}
	m.line("# %s", escape(r.Title))
	m.blank()
	m.line("%s", escape(r.Summary))
	m.blank()
	m.happened()
	m.slots()
	m.gpu()
	m.environment()
	m.pkg()
	m.unit()
	m.log()
	m.earlier()
	m.unknown()
	m.line("<sub>Written by %s from evidence gathered at %s. Signature: %s. Event: %s.</sub>", escape("1bit "+orNone(r.Evidence.Program)), m.clock.time(r.Evidence.GatheredAt),
		code(orNone(r.Signature)), code(orNone(r.Event)))
	return m.String()
}

// A page is a report that is being written. What its lines are given has to be escaped, or ours.
type page struct {
	strings.Builder
	r     *Report
	clock clock
}

func (m *page) line(format string, args ...any) {
	fmt.Fprintf(m, format, args...)
	m.WriteByte('\n')
}

func (m *page) blank() { m.WriteByte('\n') }

func (m *page) heading(text string) {
	m.line("## %s", text)
	m.blank()
}

// fact is one row of a list.
func (m *page) fact(name, format string, args ...any) {
	m.line("- **%s:** %s", name, fmt.Sprintf(format, args...))
}

// table writes rows whose cells are escaped for a table.
func (m *page) table(header []string, rows [][]string) {
	m.line("| %s |", strings.Join(header, " | "))
	m.line("|%s", strings.Repeat("---|", len(header)))
	for _, row := range rows {
		m.line("| %s |", strings.Join(row, " | "))
	}
	m.blank()
}

// fence writes lines as code.
func (m *page) fence(lines []string) {
	longest := 0
	for _, l := range lines {
		longest = max(longest, backticks(l))
	}
	fence := strings.Repeat("`", max(3, longest+1))
	m.line("%stext", fence)
	for _, l := range lines {
		m.line("%s", l)
	}
	m.line("%s", fence)
	m.blank()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
