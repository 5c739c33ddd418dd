package engine

import "strings"

// logHead is the line that names the slot of the bare timings behind it, as the
// log of 2025 has it. It is no event.
const logHead LogKind = "head"

// slotText reads what a slot says of itself, without the leading spaces.
func (ev *LogEvent) slotText(s string) bool {
	if s == "" {
		ev.Kind = logHead
		return false
	}
	switch s[0] {
	case 's':
		switch {
		case strings.HasPrefix(s, "selected slot by "):
			return ev.selected(s[len("selected slot by "):])
		case strings.HasPrefix(s, "stop processing: n_"):
			return ev.release(s[len("stop processing: n_"):])
		}
	case 'p':
		switch {
		case strings.HasPrefix(s, "prompt eval time"):
			return ev.timing(s)
		case strings.HasPrefix(s, "processing task"):
			return ev.launch(s[len("processing task"):])
		case strings.HasPrefix(s, "prompt processing"):
			ev.Kind = LogProgress
			return true
		}
	case 'e', 't':
		return ev.timing(s)
	case 'g':
		return ev.graphs(s) || ev.timing(s)
	case 'n':
		switch {
		case strings.HasPrefix(s, "new prompt, "):
			return ev.newPrompt(s)
		case strings.HasPrefix(s, "n_gen = "), strings.HasPrefix(s, "n_decoded = "):
			ev.Kind = LogProgress
			return true
		}
	}
	return false
}

// selected reads what follows "selected slot by".
func (ev *LogEvent) selected(s string) bool {
	switch {
	case len(s) >= 3 && strings.EqualFold(s[:3], "lru"):
		s = s[3:]
		if rest, ok := strings.CutPrefix(s, ", n_tokens = "); ok {
			if _, s, ok = cutNumber(rest); !ok {
				return false
			}
		}
		if len(s) < len(", t_last = ") || !strings.EqualFold(s[:len(", t_last = ")], ", t_last = ") {
			return false
		}
		last, _, ok := cutSigned(s[len(", t_last = "):])
		ev.Kind, ev.How, ev.NeverUsed = LogSelected, SelectedLRU, last == -1
		return ok
	case len(s) > 3 && (strings.EqualFold(s[:3], "lcp") || s[:3] == "lcs") && strings.HasPrefix(s[3:], " similarity"):
		ev.Kind, ev.How = LogSelected, SelectedLCP
		for _, key := range []string{"sim_best = ", ", similarity = "} {
			if _, rest, ok := strings.Cut(s, key); ok {
				ev.Similarity, _, _ = cutFloat(rest)
				break
			}
		}
		return true
	case strings.HasPrefix(s, "id ("):
		ev.Kind, ev.How = LogSelected, SelectedID
		return true
	}
	return false
}

// launch reads what follows "processing task".
func (ev *LogEvent) launch(s string) bool {
	child, named := strings.CutPrefix(s, ", is_child = ")
	if s != "" && !(named && digits(child) == 1 && len(child) == 1) {
		return false
	}
	ev.Kind, ev.Child = LogLaunch, child == "1"
	return true
}

// release reads what follows "stop processing: n_".
func (ev *LogEvent) release(s string) bool {
	switch {
	case strings.HasPrefix(s, "tokens = "):
		s = s[len("tokens = "):]
	case strings.HasPrefix(s, "past = "):
		s = s[len("past = "):]
	default:
		return false
	}
	tokens, s, ok := cutNumber(s)
	ev.Kind, ev.Tokens, ev.Truncated = LogRelease, tokens, strings.HasPrefix(s, ", truncated = 1")
	return ok
}

// timing reads a final timing: `prompt eval time = 4.00 ms / 31 tokens (…`, the
// same for `eval time` and `total time`. In 2024 the second was called
// `generation eval time`, its tokens `runs`, and the third had no tokens.
func (ev *LogEvent) timing(s string) bool {
	switch {
	case strings.HasPrefix(s, "prompt eval time"):
		ev.Phase, s = PhasePrompt, s[len("prompt eval time"):]
	case strings.HasPrefix(s, "eval time"):
		ev.Phase, s = PhaseEval, s[len("eval time"):]
	case strings.HasPrefix(s, "total time"):
		ev.Phase, s = PhaseTotal, s[len("total time"):]
	case strings.HasPrefix(s, "generation eval time"):
		ev.Phase, s = PhaseEval, s[len("generation eval time"):]
	default:
		return false
	}
	value, ok := strings.CutPrefix(trimSpaces(s), "= ")
	if !ok || s[0] != ' ' {
		return false
	}
	ms, s, ok := cutFloat(trimSpaces(value))
	if !ok {
		return false
	}
	if ev.Phase == PhaseTotal && s == " ms" {
		ev.Kind, ev.MS = LogTiming, ms
		return true
	}
	if s, ok = strings.CutPrefix(s, " ms /"); !ok {
		return false
	}
	tokens, s, ok := cutNumber(trimSpaces(s))
	if !ok || !strings.HasPrefix(s, " tokens") && !strings.HasPrefix(s, " runs") {
		return false
	}
	ev.Kind, ev.MS, ev.Tokens = LogTiming, ms, tokens
	return true
}

// graphs reads `graphs reused =         11`.
func (ev *LogEvent) graphs(s string) bool {
	s, ok := strings.CutPrefix(s, "graphs reused = ")
	if !ok {
		return false
	}
	ev.GraphsReused, _, ok = cutNumber(trimSpaces(s))
	ev.Kind = LogGraphs
	return ok
}

// newPrompt reads `new prompt, n_ctx_slot = 2048, n_keep = 0, task.n_tokens = 31`,
// whose last key was n_prompt_tokens before.
func (ev *LogEvent) newPrompt(s string) bool {
	for _, key := range []string{"task.n_tokens = ", "n_prompt_tokens = "} {
		if _, rest, found := strings.Cut(s, key); found {
			tokens, _, ok := cutNumber(rest)
			ev.Kind, ev.Tokens = LogPrompt, tokens
			return ok
		}
	}
	return false
}
