package incident

import (
	"path"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// signatureOf is a few words that are the same for every end of one kind, on whatever day, host and process, and from
// whatever package: such as `nan-abort whole-vocabulary never-used-slot common_sampler_sample`.
func signatureOf(r *Report, d *downfall) string {
	var words []string
	if d == nil {
		if len(r.Guard) == 0 {
			return ""
		}
		words = append([]string{"nan-continue"}, guardWords(r)...)
	} else {
		words = d.kind(r)
		if k := r.gpuFault(); k != nil {
			words = append(words, "gpu-"+k.Kind)
		}
	}
	if f := guardFunction(r); f != "" {
		words = append(words, f)
	} else if len(r.Trace) > 0 {
		words = append(words, r.Trace[0])
	}
	for i, w := range words {
		words[i] = reWord().ReplaceAllString(w, "-")
	}
	return strings.Join(words, " ")
}

var (
	reWord     = lazyregexp.New(`[^A-Za-z0-9_:.+-]+`)
	reFunction = lazyregexp.New(`(?:^|\s)(\w{1,80}): HRX returned NaN logits`)
	rePlace    = lazyregexp.New(`^(\S+\.(?:c|cc|cpp|cu|cuh|h|hpp|m|mm)):\d+: `)
)

// kind is how it ended: who or what did it, then what is particular.
func (d *downfall) kind(r *Report) []string {
	var words []string
	if d.run.mark(markStartLimit) != nil {
		words = append(words, "start-limit")
	}
	if d.Child {
		words = append(words, "server-died")
	}
	switch {
	case len(d.words) > 0:
		return append(words, d.words...)
	case d.server != nil && d.server.nan():
		return append(append(words, "nan-abort"), guardWords(r)...)
	case d.abort != "":
		words = append(words, "abort")
		if f := rePlace().FindStringSubmatch(d.abort); f != nil {
			words = append(words, path.Base(f[1]))
		}
		return words
	case d.core != nil && d.core.name != "":
		return append(words, strings.ToLower(d.core.name))
	case d.Signal != "":
		return append(words, strings.ToLower(d.Signal))
	case d.Status != nil:
		return append(words, "exit-"+strconv.Itoa(*d.Status))
	case d.Result != "":
		return append(words, "result-"+d.Result)
	}
	return append(words, "silent")
}

// guardWords say what the guard saw, and where.
func guardWords(r *Report) []string {
	if len(r.Guard) == 0 {
		return []string{"no-guard-line"}
	}
	g := r.Guard[len(r.Guard)-1]
	words := []string{"some-logits"}
	switch {
	case g.Whole:
		words[0] = "whole-vocabulary"
	case g.Generation == 1:
		words[0] = "one-index"
	}
	if s := r.guarded(g); s != nil {
		if s.NeverUsed {
			return append(words, "never-used-slot")
		}
		return append(words, "used-slot")
	}
	return words
}

// guarded is the slot that a guard line is certainly of, nil if that is not known.
func (r *Report) guarded(g Guard) *Slot {
	if g.Slot == nil {
		return nil
	}
	for i := range r.Slots {
		if s := &r.Slots[i]; s.ID == *g.Slot && g.Task != nil && s.Task == *g.Task {
			return s
		}
	}
	return nil
}

func guardFunction(r *Report) string {
	if len(r.Guard) == 0 {
		return ""
	}
	if f := reFunction().FindStringSubmatch(r.Guard[len(r.Guard)-1].Text); f != nil {
		return f[1]
	}
	return ""
}
