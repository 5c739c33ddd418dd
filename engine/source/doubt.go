package source

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// doubt returns why a yes or a no cannot stand, or nil. What the last commits
// that matter follow is of no account, for it came before them.
func (h *history) doubt(ctx context.Context, tips []string, answer Carriage) (*Carriage, error) {
	after := []string{h.pin}
	for _, id := range tips {
		after = append(after, "^"+id)
	}
	if cut, err := h.c.cut(ctx, after...); err != nil {
		return nil, err
	} else if cut {
		a := unknown("the history is shallow: %s could be followed by more: %s", answer.How, unshallow)
		if len(tips) == 0 {
			a = unknown("the history is shallow: the fix may be in what is missing: %s", unshallow)
		}
		return &a, nil
	}
	if doubt, err := h.said(ctx, after, answer); err != nil || doubt != nil {
		return doubt, err
	}
	if answer.Carried == nil || !*answer.Carried {
		return nil, nil
	}
	merge, err := h.droppedBy(ctx, tips)
	if err != nil || merge == "" {
		return nil, err
	}
	a := unknown("%s, but the merge %s has not its files as the side with it had them, nor as git merges them", answer.How, short(merge))
	return &a, nil
}

// said looks for later commits whose message speaks of the fix although
// neither their patch nor a hash shows what they do.
func (h *history) said(ctx context.Context, after []string, answer Carriage) (*Carriage, error) {
	ids, err := h.c.revList(ctx, after...)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		applies, loose := h.loose[id]
		if _, known := h.applied[id]; !loose || known || applies == (answer.Carried != nil && *answer.Carried) {
			continue
		}
		what := "patch"
		if !applies {
			what = "patch backwards"
		}
		a := unknown("%s, but %s is the same %s but for white space", answer.How, short(id), what)
		return &a, nil
	}
	if doubt, err := h.unread(ctx, ids, answer); err != nil || doubt != nil {
		return doubt, err
	}
	subjects := []string{h.fix.subject()}
	known, err := h.c.commits(ctx, slices.Sorted(maps.Keys(h.applied)))
	if err != nil {
		return nil, err
	}
	for _, c := range known {
		subjects = append(subjects, c.subject())
	}
	applies := map[string]string{} // the titles of the commits that apply the fix
	for id := range h.applied {
		if h.applied[id] && known[id] != nil {
			applies[id] = known[id].subject()
		}
	}
	for _, id := range ids {
		m, ok := h.says[id]
		if _, sorted := h.applied[id]; !ok || sorted {
			continue
		}
		if names(m.other, h.applied) {
			a := unknown("%s, but %s says that it reverts it in part or in other words", answer.How, short(id))
			return &a, nil
		}
		if (answer.Carried == nil || !*answer.Carried) && names(m.picked, h.applied) {
			a := unknown("%s, but %s says that it was picked from the fix, with another patch", answer.How, short(id))
			return &a, nil
		}
		if slices.ContainsFunc(subjects, m.about) && !h.explained(m) {
			a := unknown("%s, but %s has the title %s and names no commit of this history", answer.How, short(id), h.named[id].subject())
			return &a, nil
		}
		for _, target := range slices.Sorted(maps.Keys(applies)) {
			if m.undoes(target, applies[target]) || m.undoesTitle(applies[target]) && !h.other(m, applies[target]) {
				a := unknown("%s, but %s seems to revert %s", answer.How, short(id), short(target))
				return &a, nil
			}
		}
	}
	return nil, nil
}

// other tells whether a revert names by its hash a commit of this history that
// has the same title, and so is about that one.
func (h *history) other(m mention, subject string) bool {
	return slices.ContainsFunc(m.reverts, func(name string) bool {
		c := h.targets[name]
		return c != nil && !h.applied[c.id] && needle(c.subject()) == needle(subject)
	})
}

// unread looks for a commit that touches the fix's files, and whose message
// nobody can search.
func (h *history) unread(ctx context.Context, ids []string, answer Carriage) (*Carriage, error) {
	var opaque []string
	for _, id := range ids {
		_, sorted := h.applied[id]
		if c := h.named[id]; c != nil && !sorted && c.opaque() != "" {
			opaque = append(opaque, id)
		}
	}
	touched, err := h.c.touched(ctx, opaque)
	if err != nil {
		return nil, err
	}
	for _, id := range opaque {
		// What a merge touches is a matter of its sides.
		if len(h.named[id].parents) > 1 || slices.ContainsFunc(h.change.files, func(f string) bool { return slices.Contains(touched[id], f) }) {
			a := unknown("%s, but the message of %s, which changes its files, %s and was not read", answer.How, short(id), h.named[id].opaque())
			return &a, nil
		}
	}
	return nil, nil
}

// explained tells whether a revert names a commit that is here, and so is about
// another one of the same title.
func (h *history) explained(m mention) bool {
	return slices.ContainsFunc(m.reverts, func(name string) bool { return h.targets[name] != nil })
}

// names tells whether one of the ids, as written, is among the commits.
func names(written []string, commits map[string]bool) bool {
	for _, w := range written {
		for id := range commits {
			if strings.HasPrefix(id, w) {
				return true
			}
		}
	}
	return false
}
