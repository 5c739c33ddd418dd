package incident

// unknown lists what the report does not know.
func (m *page) unknown() {
	m.heading("What is not known")
	list := m.r.unknowns()
	if len(list) == 0 {
		m.line("Nothing that was looked for is missing.")
	}
	for _, s := range list {
		m.line("- %s", escape(s))
	}
	m.blank()
}

// unknowns says what could not be gathered, and what the evidence does not tell.
func (r *Report) unknowns() []string {
	var list []string
	add := func(missing bool, text string) {
		if missing {
			list = append(list, text)
		}
	}
	e, end := r.Evidence, r.Ending
	list = append(list, e.Missing...)
	add(e.Package == nil, "which package the service ran from")
	if end != nil {
		add(end.StartedAt == nil, "when this run started: its start is not in the journal that was read")
		add(end.clockSet(), "the true times before the end: the host's clock was set while the service ran, or the host slept, so they do not agree with its uptime")
		add(len(r.Trace) == 0 && (r.Abort != "" || end.Signal == "SIGSEGV" || end.Signal == "SIGABRT"), "where in the program it ended: there is no backtrace in the log and no core dump in the journal")
		add(r.Restart != nil && r.Restart.StartedAt != nil && r.Restart.Host == nil, "GTT and MemAvailable when it came back: the service logged no such line")
		add(r.Server != nil && r.Server.Slots == 0, "how many slots the server had, and whether some were never used: the log does not go back to its start")
		for _, g := range r.Guard {
			if g.Slot == nil && r.Server != nil {
				add(true, "which slot the NaN was on: more than one task can be meant, or a part of the log is not there")
				break
			}
		}
		add(true, "who had the GPU open when it ended, beyond the CI runs and claims on record: the list of processes is of when this was gathered")
	}
	return list
}
