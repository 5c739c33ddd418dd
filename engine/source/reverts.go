package source

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// maxNames bounds how far messages lead that name one another.
const maxNames = 100

// byMessage finds the commits that say they revert one of those known, or
// revert such a revert, until there are no more.
func (h *history) byMessage(ctx context.Context) error {
	ids, err := h.c.revList(ctx, h.scope...)
	if err != nil {
		return err
	}
	if h.named, err = h.c.search(ctx, ids, mentions); err != nil {
		return err
	}
	h.says = map[string]mention{}
	for id, c := range h.named {
		h.says[id] = readMention(c)
	}
	if err := h.follow(ctx); err != nil {
		return err
	}
	order := slices.Sorted(maps.Keys(h.says))
	for changed := true; changed; {
		changed = false
		for _, id := range order {
			did, err := h.classify(ctx, id)
			if err != nil {
				return err
			}
			changed = changed || did
		}
	}
	return nil
}

// follow reads the commits that messages name, and those that their messages
// name: a revert that was picked from elsewhere names what is elsewhere.
func (h *history) follow(ctx context.Context) error {
	h.targets = map[string]*commit{}
	open := slices.Collect(maps.Keys(h.says))
	for round := 0; len(open) > 0 && round < maxNames; round++ {
		ask := map[string]bool{}
		for _, id := range open {
			for _, name := range h.says[id].reverts {
				if h.targets[name] == nil {
					ask[name] = true
				}
			}
		}
		if len(ask) == 0 {
			break
		}
		names := slices.Sorted(maps.Keys(ask))
		found, err := h.c.commits(ctx, names)
		if err != nil {
			return err
		}
		open = nil
		for _, name := range names {
			for id, c := range found {
				if !strings.HasPrefix(id, name) {
					continue
				}
				h.targets[name] = c
				if _, known := h.says[id]; !known {
					h.says[id] = readMention(c)
					open = append(open, id)
				}
			}
		}
	}
	return nil
}

// classify looks what a commit says it reverts.
func (h *history) classify(ctx context.Context, id string) (bool, error) {
	here := h.named[id] != nil
	was, known := h.applied[id]
	if known && h.why[id] == "" || slices.Contains(h.twofold, id) {
		return false, nil // its patch says what it does
	}
	for _, name := range h.says[id].reverts {
		applied, found, err := h.target(ctx, name, h.targets[name])
		if err != nil {
			return false, err
		}
		switch {
		case !found:
		case known && was == applied: // and it reverts the other kind too
			if here {
				h.twofold = append(h.twofold, id)
			}
			return true, nil
		case !known:
			h.applied[id], h.why[id] = !applied, name
			if here {
				h.inside[id] = true
			}
			return true, nil
		}
	}
	return false, nil
}

// target tells what a named commit does: it is known, or it is a merge that
// brought in what is.
func (h *history) target(ctx context.Context, name string, c *commit) (applied, found bool, err error) {
	for id, a := range h.applied {
		if strings.HasPrefix(id, name) {
			return a, true, nil
		}
	}
	if c == nil || len(c.parents) < 2 {
		return false, false, nil
	}
	var brought []string
	for _, id := range slices.Sorted(maps.Keys(h.applied)) {
		in, err := h.c.ancestor(ctx, id, c.id)
		if err != nil || !in {
			return false, false, err
		}
		before, err := h.c.ancestor(ctx, id, c.parents[0])
		if err != nil {
			return false, false, err
		}
		if !before {
			brought = append(brought, id)
		}
	}
	if len(brought) == 0 {
		return false, false, nil
	}
	last, err := h.independent(ctx, brought)
	if err != nil {
		return false, false, err
	}
	return h.applied[last[0]], true, nil
}
