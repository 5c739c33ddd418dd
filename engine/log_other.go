package engine

import "strings"

// otherLine reads the lines of libraries. Those that are only told by words are
// believed at the levels of an error or a warning, or without a level: prompts
// and model names come as information.
func (ev *LogEvent) otherLine(text string) bool {
	said := text // without the function's name
	if name, rest, ok := strings.Cut(text, ": "); ok && isWord(name) {
		said = rest
		if ev.placed(name, rest) {
			return true
		}
	}
	if g := parseNaN(said); g != nil {
		ev.Kind, ev.NaN = LogNaN, g
		return true
	}
	if ev.Level == 'I' || ev.Level == 'D' || ev.Level == 'T' {
		return false
	}
	switch {
	case isBind(text):
		ev.Kind = LogBind
	case isAlloc(text):
		ev.Kind = LogAlloc
	case isDevice(text):
		ev.Kind = LogDevice
	case isAbort(text):
		ev.Kind, ev.NaNAbort = LogAbort, strings.Contains(text, "NaN logits")
	case strings.HasPrefix(text, "terminate called "), isSampleFailure(text):
		ev.Kind = LogAbort
	case ev.Level == 0:
		return ev.bareLine(trimSpaces(text))
	default:
		return ev.candidates(trimSpaces(text))
	}
	return true
}

// bareLine reads what stands without a prefix of its own: the timings of 2025,
// which follow a line that names the slot, and the sampler's last words.
func (ev *LogEvent) bareLine(s string) bool {
	return ev.timing(s) || ev.graphs(s) || ev.candidates(s)
}

// placed reads where the model goes: `load_tensors: offloaded 33/33 layers to GPU`.
func (ev *LogEvent) placed(name, s string) bool {
	switch {
	case strings.HasPrefix(s, "offloaded "):
		some, rest, ok := cutNumber(s[len("offloaded "):])
		if !ok || rest == "" || rest[0] != '/' {
			return false
		}
		all, rest, ok := cutNumber(rest[1:])
		if !ok || !strings.HasPrefix(rest, " layers to GPU") {
			return false
		}
		ev.Kind, ev.Offloaded, ev.Layers = LogOffload, some, all
	case strings.HasPrefix(s, "using device "):
		device, _, _ := strings.Cut(s[len("using device "):], " ")
		ev.Kind, ev.Device = LogUsing, device
		return device != ""
	case name == "load_backend" && strings.HasPrefix(s, "loaded "):
		device, _, ok := strings.Cut(s[len("loaded "):], " backend from ")
		if !ok {
			return false
		}
		ev.Kind, ev.Device = LogBackend, device
	case name == "load_backend" && (strings.HasPrefix(s, "failed to load ") || strings.HasPrefix(s, "failed to find ggml_backend_init")):
		ev.Kind, ev.Detail = LogMissing, s
	case strings.HasPrefix(s, "no usable GPU found"):
		ev.Kind = LogNoGPU
	default:
		return false
	}
	return true
}

// parseNaN reads the guard's line in its two versions, and as far as it goes if
// whoever copied it wrapped it.
func parseNaN(s string) *NaNGuard {
	s, ok := strings.CutPrefix(s, "HRX returned NaN logits")
	if !ok {
		return nil
	}
	if rest, ok := strings.CutPrefix(s, " at vocab index "); ok {
		if i, _, ok := cutNumber(rest); ok {
			return &NaNGuard{Count: 1, First: i, Last: i, Contiguous: true}
		}
		return &NaNGuard{}
	}
	g := &NaNGuard{}
	rest, ok := strings.CutPrefix(s, ": count=")
	if !ok {
		return g
	}
	count, rest, ok := cutNumber(rest)
	if !ok {
		return g
	}
	if rest, ok = strings.CutPrefix(rest, " of "); !ok {
		return g
	}
	of, rest, ok := cutNumber(rest)
	if !ok {
		return g
	}
	g.Count, g.Of = count, of
	g.shape(rest)
	return g
}

// shape reads `, index range [0..151935], contiguous=yes, continuing=no`, whole
// or not at all.
func (g *NaNGuard) shape(s string) {
	s, ok := strings.CutPrefix(s, ", index range [")
	if !ok {
		return
	}
	first, s, ok := cutSigned(s)
	if !ok || !strings.HasPrefix(s, "..") {
		return
	}
	last, s, ok := cutSigned(s[2:])
	if !ok {
		return
	}
	contiguous, s, ok := cutYesNo(s, "], contiguous=")
	if !ok {
		return
	}
	continuing, _, ok := cutYesNo(s, ", continuing=")
	if !ok {
		return
	}
	g.First, g.Last, g.Contiguous, g.Continuing = first, last, contiguous, continuing
}

// isBind finds `srv  start: couldn't bind HTTP server socket, hostname: …`.
func isBind(text string) bool {
	at := strings.Index(text, "couldn't bind ")
	if at < 0 || !strings.HasPrefix(strings.TrimPrefix(text[at+len("couldn't bind "):], "HTTP "), "server socket") {
		return false
	}
	head := text[:at]
	return head == "" || strings.HasSuffix(head, ": ") && len(strings.Fields(head)) == 2
}

// isAlloc finds a memory request that a device or its driver refused.
func isAlloc(text string) bool {
	for _, words := range []string{"hrx_allocator_allocate_buffer", "allocate HRX host staging buffer", "cudaMalloc failed: out of memory", "ErrorOutOfDeviceMemory"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return refused(text, "failed to allocate ") || refused(text, "unable to allocate ")
}

// refused finds the words before the name of a buffer: `failed to allocate
// HRX0 buffer of size 17179869184`, `failed to allocate compute buffers`.
func refused(text, before string) bool {
	for {
		_, rest, ok := strings.Cut(text, before)
		if !ok {
			return false
		}
		name, next, _ := strings.Cut(rest, " ")
		if strings.Contains(name, "buffer") || strings.HasPrefix(strings.TrimPrefix(next, "compute "), "buffer") {
			return true
		}
		text = rest
	}
}

// isDevice finds what the GPU runtime says when it has given up.
func isDevice(text string) bool {
	return strings.Contains(text, "HSA_STATUS_ERROR") || strings.Contains(text, "wait for HRX graph replay commands failed") ||
		hasWords(text, "Queue error")
}

// hasWords finds words that are not part of longer ones.
func hasWords(text, words string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], words)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(words)
		if (at == 0 || !isWordByte(text[at-1])) && (end == len(text) || !isWordByte(text[end])) {
			return true
		}
		from = at + 1
	}
}

// isAbort finds `/src/ggml.c:99: GGML_ASSERT(a == b) failed`.
func isAbort(text string) bool {
	at := strings.IndexAny(text, " \t\n\f\r")
	if at < 0 || at+1 >= len(text) || text[at] != ' ' || strings.IndexByte(" \t\n\f\r", text[at+1]) >= 0 {
		return false
	}
	place, ok := strings.CutSuffix(text[:at], ":")
	if !ok {
		return false
	}
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 || colon+1 == len(place) || digits(place[colon+1:]) != len(place)-colon-1 {
		return false
	}
	file := place[:colon]
	dot := strings.LastIndexByte(file, '.')
	if dot < 1 {
		return false
	}
	switch file[dot+1:] {
	case "c", "cc", "cpp", "cu", "cuh", "h", "hpp", "m", "mm":
		return true
	}
	return false
}

// isSampleFailure finds `======= Failed to sample token`.
func isSampleFailure(text string) bool {
	rest := strings.TrimLeft(text, "=")
	return len(rest) < len(text) && strings.HasPrefix(rest, " Failed to sample token")
}

// candidates reads the sampler's last words: `candidates->size: 40, max = nan, sump = nan`.
func (ev *LogEvent) candidates(s string) bool {
	s, ok := strings.CutPrefix(s, "candidates->size: ")
	if !ok {
		return false
	}
	_, s, ok = cutNumber(s)
	if !ok {
		return false
	}
	s, ok = strings.CutPrefix(s, ", max = ")
	if !ok {
		return false
	}
	most, sum, ok := strings.Cut(s, ", sump = ")
	if !ok || most == "" || sum == "" || strings.ContainsAny(most, " \t") || strings.ContainsAny(sum, " \t") {
		return false
	}
	ev.Kind, ev.NaNAbort = LogAbort, strings.Contains(most, "nan") || strings.Contains(sum, "nan")
	return true
}
