package incident

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/ui"
)

const maxRows = 30 // of a table

// gpu tells what else used the GPU.
func (m *page) gpu() {
	m.heading("What else used the GPU")
	e := m.r.Evidence
	at := e.GatheredAt
	if m.r.Ending != nil {
		at = m.r.Ending.At
	}
	if len(e.Runs) == 0 && len(e.Claims) == 0 && len(e.Processes) == 0 {
		m.line("No CI run, no claim and no other process is on record.")
		m.blank()
	}
	m.runs(e.Runs, at)
	m.claims(at)
	m.processes()
	m.kernel()
}

func (m *page) runs(runs []Run, at time.Time) {
	if len(runs) == 0 {
		return
	}
	m.line("CI runs that overlap the window:")
	m.blank()
	var rows [][]string
	for _, r := range runs[:min(len(runs), maxRows)] {
		spans := "no"
		if r.spans(at) {
			spans = "**yes**"
		}
		end := "goes on"
		if r.Status == "completed" || r.Status == "" {
			end = r.Updated.UTC().Format("15:04:05Z")
		}
		rows = append(rows, []string{link(fmt.Sprint(r.ID), r.URL), code(r.Workflow), code(cut(r.Head, 12)), code(cut(r.Title, 100)),
			fmt.Sprintf("%s to %s (%s to %s %s)", r.begun().UTC().Format("2006-01-02 15:04:05Z"), end,
				m.clock.short(r.begun()), m.clock.short(r.Updated), escape(m.clock.name(r.Updated))),
			escape(strings.Trim(r.Status+" "+r.Conclusion, " ")), spans})
	}
	m.table([]string{"run", "workflow", "head", "title", "from to", "state", "spans the end"}, rows)
	m.more(len(runs))
}

func (m *page) claims(at time.Time) {
	claims := m.r.Evidence.Claims
	if len(claims) == 0 {
		return
	}
	m.line("Claims of the GPU in the window:")
	m.blank()
	var rows [][]string
	for _, c := range claims[:min(len(claims), maxRows)] {
		end, how := m.clock.short(c.Until)+" at most", cmp.Or(c.How, "–")
		if c.Ended != nil {
			end = m.clock.short(*c.Ended)
		}
		held := "no"
		if holds(c, at) {
			held = "**yes**"
		}
		rows = append(rows, []string{code(cut(c.Label, 100)), code(c.User), code(cut(c.Command, 160)), m.clock.time(c.Since) + " to " + end, escape(how), held})
	}
	m.table([]string{"label", "user", "command", "from to", "ended by", "spans the end"}, rows)
	m.more(len(claims))
}

func (m *page) processes() {
	list := m.r.Evidence.Processes
	if len(list) == 0 {
		return
	}
	m.line("Other processes that have a GPU open at %s, when this was gathered (who had it at the end is not known):", m.clock.time(m.r.Evidence.GatheredAt))
	m.blank()
	var rows [][]string
	for _, p := range list[:min(len(list), maxRows)] {
		since, memory := "–", "–"
		if !p.Start.IsZero() {
			since = m.clock.time(p.Start)
		}
		if p.Bytes != nil {
			memory = ui.Size(*p.Bytes)
		}
		rows = append(rows, []string{fmt.Sprint(p.PID), code(p.Command), since, memory, code(strings.Join(p.Devices, " "))})
	}
	m.table([]string{"pid", "command", "since", "GPU memory", "device"}, rows)
	m.more(len(list))
}

func (m *page) kernel() {
	if len(m.r.Kernel) == 0 {
		if slices.ContainsFunc(m.r.Evidence.Missing, func(s string) bool { return strings.HasPrefix(s, "the kernel's log: ") }) {
			m.line("What could be read of the kernel's log has no line about a GPU, and no kill for memory, in the window: see below what is not known.")
		} else {
			m.line("The kernel's log has no line about a GPU, and no kill for memory, in the window.")
		}
		m.blank()
		return
	}
	m.line("The kernel's log in the window:")
	m.blank()
	var rows [][]string
	for _, k := range m.r.Kernel[:min(len(m.r.Kernel), maxRows)] {
		at, whose := "–", "somebody else's"
		if !k.At.IsZero() {
			at = m.clock.short(k.At)
		}
		switch k.Whose {
		case KernelOurs:
			whose = "**this service's**"
		case KernelDevice:
			whose = "nobody is blamed"
		}
		process := k.Process
		if k.PID != 0 {
			process = strings.TrimSpace(fmt.Sprintf("%s %d", process, k.PID))
		}
		first, _, _ := strings.Cut(k.Text, "\n")
		rows = append(rows, []string{at, escape(k.Kind), whose, code(k.Device), code(process), code(cut(first, 200))})
	}
	m.table([]string{"at", "kind", "whose", "device", "process", "line"}, rows)
	m.more(len(m.r.Kernel))
}

// more says that a table was cut.
func (m *page) more(n int) {
	if n > maxRows {
		m.line("… and %d more, which the JSON has.", n-maxRows)
		m.blank()
	}
}

// link is a number with where it leads, if that is a plain address.
func link(text, url string) string {
	if !strings.HasPrefix(url, "https://") || strings.ContainsAny(url, "()<>[]|\\`\"' ") || ui.Clean(url) != url {
		return escape(text)
	}
	return "[" + escape(text) + "](" + url + ")"
}

// parameters shows those that decide when queues are taken off the GPU and memory moves, and those that were set at the
// boot. A module has a hundred more.
func (m *page) parameters(h HostState) {
	if value := h.Parameters["amdgpu.cwsr_enable"]; value != "" {
		m.fact("Wave save and restore", "CWSR %s (%s)", escape(value), code("amdgpu.cwsr_enable"))
	}
	var shown []string
	for _, key := range slices.Sorted(maps.Keys(h.Parameters)) {
		module := strings.HasPrefix(key, "amdgpu.") || strings.HasPrefix(key, "ttm.") || strings.HasPrefix(key, "nvidia")
		if !module || strings.Contains(h.Command, key+"=") {
			shown = append(shown, key+"="+h.Parameters[key])
		}
	}
	if len(shown) > 0 {
		more := ""
		if n := len(h.Parameters) - len(shown); n > 0 {
			more = fmt.Sprintf("; the JSON has %d more", n)
		}
		m.fact("Kernel parameters", "%s%s", codes(shown[:min(len(shown), maxRows)]), more)
	}
}

// environment tells of the host, then and now.
func (m *page) environment() {
	m.heading("Environment")
	e, h := m.r.Evidence, m.r.Evidence.HostNow
	m.fact("Host", "%s, kernel %s", code(e.Host), code(h.Kernel))
	if !h.Boot.IsZero() {
		m.fact("Booted", "%s", m.clock.time(h.Boot))
	}
	m.parameters(h)
	if h.Command != "" {
		m.fact("Kernel command line", "%s", code(h.Command))
	}
	if back := m.r.Restart; back != nil && back.Host != nil {
		m.fact("Memory then", "%s (at the restart, %s)", memoryText(back.Host.GTTFreeGiB, back.Host.GTTTotalGiB, back.Host.MemAvailableGiB), m.clock.time(back.Host.At))
	}
	if !h.At.IsZero() {
		var free *float64
		if h.GTTUsed != nil && h.GTTTotal != nil {
			f := *h.GTTTotal - *h.GTTUsed
			free = &f
		}
		of := ""
		if h.MemTotal != nil {
			of = fmt.Sprintf(" of %.1f GiB", *h.MemTotal)
		}
		m.fact("Memory now", "%s%s (%s)", memoryText(free, h.GTTTotal, h.MemAvailable), of, m.clock.time(h.At))
	}
	if h.Load != "" {
		m.fact("Load average now", "%s", code(h.Load))
	}
	for _, d := range e.Devices {
		text := code(d.PCI) + " " + code(d.Driver)
		if d.Name != "" {
			text += " " + code(d.Name)
		}
		if d.GTTUsedBytes != nil && d.GTTTotalBytes != nil {
			text += fmt.Sprintf(", GTT %s of %s in use", ui.Size(*d.GTTUsedBytes), ui.Size(*d.GTTTotalBytes))
		}
		if d.TempC != nil {
			text += fmt.Sprintf(", %.0f °C", *d.TempC)
		}
		m.fact("GPU now", "%s", text)
	}
	m.blank()
}
