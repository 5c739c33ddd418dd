package source

import (
	"context"
	"slices"
	"strings"
)

// maxPaths bounds the files that one command names.
const maxPaths = 500

// droppedBy returns a merge after the last commits that applied the fix which
// may have dropped it: one of a side with the fix and a side without, that has
// a file of the fix neither as a side with it had it nor as git merges the two
// by itself. A file that was renamed is not followed.
func (h *history) droppedBy(ctx context.Context, tips []string) (string, error) {
	files := h.change.files
	if len(files) == 0 {
		return "", nil
	}
	has, err := h.sides(ctx)
	if err != nil {
		return "", err
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
	ids = slices.DeleteFunc(ids, func(id string) bool {
		m := merges[id]
		return m == nil || !slices.ContainsFunc(m.parents, has) || !slices.ContainsFunc(m.parents, func(p string) bool { return !has(p) })
	})
	// One question for all merges and the nth of their sides with the fix.
	changed := map[string][]string{}
	for n, more := 0, true; more; n++ {
		more = false
		var pairs []string
		for _, id := range ids {
			with := slices.DeleteFunc(slices.Clone(merges[id].parents), func(p string) bool { return !has(p) })
			if n < len(with) && (n == 0 || len(changed[id]) > 0) {
				pairs, more = append(pairs, id+" "+with[n]), true
			}
		}
		differ, err := h.c.differ(ctx, pairs, files)
		if err != nil {
			return "", err
		}
		for _, pair := range pairs {
			id, _, _ := strings.Cut(pair, " ")
			if n == 0 {
				changed[id] = differ[id]
				continue
			}
			changed[id] = slices.DeleteFunc(changed[id], func(f string) bool { return !slices.Contains(differ[id], f) })
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return len(changed[id]) == 0 })
	return h.unlike(ctx, ids, merges, changed)
}

// sides tells of commits whether they have the fix: something that applies it
// came before, and nothing that undid it was the last.
func (h *history) sides(ctx context.Context) (func(id string) bool, error) {
	follow := map[string]map[string]bool{} // what follows each commit that matters, and itself
	for id := range h.inside {
		ids, err := h.c.revList(ctx, "--ancestry-path", h.pin, "^"+id)
		if err != nil {
			return nil, err
		}
		follow[id] = map[string]bool{id: true}
		for _, later := range ids {
			follow[id][later] = true
		}
	}
	applies := func(at, after string) bool {
		for id := range h.inside {
			if h.applied[id] && follow[id][at] && (after == "" || follow[after][id]) {
				return true
			}
		}
		return false
	}
	return func(at string) bool {
		for id := range h.inside {
			if !h.applied[id] && follow[id][at] && !applies(at, id) {
				return false
			}
		}
		return applies(at, "")
	}, nil
}

// unlike returns the first merge whose changed files are not what git makes of
// its two sides.
func (h *history) unlike(ctx context.Context, ids []string, merges map[string]*commit, changed map[string][]string) (string, error) {
	if len(ids) == 0 {
		return "", nil
	}
	a, err := h.c.aside(ctx, h.pin)
	if err != nil {
		return "", err
	}
	defer a.close()
	for _, id := range ids {
		m := merges[id]
		if len(m.parents) != 2 {
			return id, nil // git merges many sides one by one, and says not how
		}
		tree, err := a.remerge(ctx, m.parents[0], m.parents[1])
		if err != nil || tree == "" {
			return id, err
		}
		same, err := a.alike(ctx, id, tree, changed[id])
		if err != nil || !same {
			return id, err
		}
	}
	return "", nil
}

// alike tells whether the commit has the files as the tree has them. One that
// neither has may have moved, so then all other files have to be alike too.
func (a *aside) alike(ctx context.Context, id, tree string, files []string) (bool, error) {
	for chunk := range slices.Chunk(files, maxPaths) {
		there, err := a.git(ctx, append([]string{"ls-tree", "--full-tree", "--name-only", "-z", tree, "--"}, chunk...)...)
		if err != nil {
			return false, err
		}
		if strings.Count(string(there), "\x00") < len(chunk) {
			chunk = nil
		}
		args := append([]string{"diff-tree", "-r", "--no-renames", "--ignore-submodules=none", "--quiet", tree, id, "--"}, chunk...)
		if _, err := a.git(ctx, args...); refused(err, 1) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// differ returns, of pairs "commit parent", which of the files are not the same.
func (c *Checkout) differ(ctx context.Context, pairs, files []string) (map[string][]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	differ := map[string][]string{}
	for chunk := range slices.Chunk(files, maxPaths) {
		args := append(slices.Clone(diffTree), "--raw", "-z", "--")
		out, err := c.git(ctx, []byte(strings.Join(pairs, "\n")+"\n"), append(args, chunk...)...)
		if err != nil {
			return nil, c.unreadable(ctx, err)
		}
		touched, err := parseRaw(out)
		if err != nil {
			return nil, err
		}
		for id, found := range touched {
			differ[id] = append(differ[id], found...)
		}
	}
	return differ, nil
}
