package neighbour

import (
	"fmt"
	"strings"
)

// A tally counts troubles by their kind and remembers the first of each.
type tally struct {
	kinds []string // in the order in which they came
	first map[string]string
	count map[string]int
}

func (t *tally) add(kind, detail string) {
	if t.count == nil {
		t.first, t.count = map[string]string{}, map[string]int{}
	}
	if t.count[kind]++; t.count[kind] == 1 {
		t.kinds, t.first[kind] = append(t.kinds, kind), detail
	}
}

// list says each kind in one sentence.
func (t *tally) list() []string {
	var out []string
	for _, kind := range t.kinds {
		text := kind + ": " + cut(t.first[kind])
		if n := t.count[kind]; n > 1 {
			text += fmt.Sprintf(" (and %d more)", n-1)
		}
		out = append(out, text)
	}
	return out
}

// cut bounds a text that a program wrote.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
