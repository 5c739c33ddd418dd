package source

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// maxPaths bounds the files that one command names.
const maxPaths = 500

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
	a := unknown("%s, but the merge %s took the files of its other side", answer.How, short(merge))
	return &a, nil
}

// said looks for later commits whose message speaks of the fix although
// neither their patch nor a hash shows what they do.
func (h *history) said(ctx context.Context, after []string, answer Carriage) (*Carriage, error) {
	ids, err := h.c.revList(ctx, append(slices.Clone(grepMentions), after...)...)
	if err != nil {
		return nil, err
	}
	subjects := []string{h.fix.subject()}
	known, err := h.c.commits(ctx, slices.Sorted(maps.Keys(h.applied)))
	if err != nil {
		return nil, err
	}
	for _, c := range known {
		subjects = append(subjects, c.subject())
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

// droppedBy returns a merge after the last commits that applied the fix which
// has the fix's files as they were on a side without it, and not as they were
// on the side with it.
func (h *history) droppedBy(ctx context.Context, tips []string) (string, error) {
	files := h.change.files
	if len(files) == 0 || len(files) > maxPaths || len(h.fix.parents) > 1 {
		return "", nil
	}
	with := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(h.inside)) {
		if !h.applied[id] {
			continue
		}
		ids, err := h.c.revList(ctx, "--ancestry-path", h.pin, "^"+id)
		if err != nil {
			return "", err
		}
		with[id] = true
		for _, d := range ids {
			with[d] = true
		}
	}
	after := []string{"--merges", h.pin}
	for _, id := range tips {
		after = append(after, "^"+id)
	}
	ids, err := h.c.revList(ctx, after...)
	if err != nil {
		return "", err
	}
	merges, err := h.c.commits(ctx, ids)
	if err != nil {
		return "", err
	}
	// Two questions for all merges at once: which have the files of a side
	// without the fix, and of those, which differ from the side with it.
	var without, kept []string
	sides := map[string][2]string{}
	for _, id := range ids {
		m := merges[id]
		if m == nil || len(m.parents) != 2 || with[m.parents[0]] == with[m.parents[1]] {
			continue
		}
		has, hasNot := m.parents[0], m.parents[1]
		if with[hasNot] {
			has, hasNot = hasNot, has
		}
		sides[id] = [2]string{has, hasNot}
		without = append(without, id+" "+hasNot)
	}
	differ, err := h.c.differ(ctx, without, files)
	if err != nil {
		return "", err
	}
	for id, side := range sides {
		if !differ[id] {
			kept = append(kept, id+" "+side[0])
		}
	}
	slices.Sort(kept)
	differ, err = h.c.differ(ctx, kept, files)
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if differ[id] {
			return id, nil
		}
	}
	return "", nil
}

// differ tells of pairs "commit parent" whether files are not the same.
func (c *Checkout) differ(ctx context.Context, pairs, files []string) (map[string]bool, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	args := append(slices.Clone(diffTree), "--raw", "-z", "--")
	out, err := c.git(ctx, []byte(strings.Join(pairs, "\n")+"\n"), append(args, files...)...)
	if err != nil {
		return nil, c.unreadable(ctx, err)
	}
	touched, err := parseRaw(out)
	if err != nil {
		return nil, err
	}
	differ := map[string]bool{}
	for id, files := range touched {
		differ[id] = len(files) > 0
	}
	return differ, nil
}
