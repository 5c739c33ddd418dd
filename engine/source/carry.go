package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Carriage says whether a history carries a fix.
type Carriage struct {
	// Carried is nil when it could not be established.
	Carried *bool
	// How says in a few words how it was, or why it could not be.
	How string
}

func carried(how string) Carriage { yes := true; return Carriage{&yes, how} }

func notCarried(how string) Carriage { no := false; return Carriage{&no, how} }

func unknown(format string, args ...any) Carriage {
	return Carriage{How: fmt.Sprintf(format, args...)}
}

const (
	unshallow = "git fetch --unshallow"
	// maxNames bounds how far messages lead that name one another.
	maxNames = 100
)

// Carries tells whether the history of the commit pin carries what the commit
// fix did. Both are ids, whole or the beginning of one. The package comment
// says what counts. An error means that git could not be asked.
func (c *Checkout) Carries(ctx context.Context, pin, fix string) (Carriage, error) {
	var full [2]string
	for i, id := range []string{pin, fix} {
		var err error
		if full[i], err = c.resolve(ctx, id); err != nil {
			return Carriage{}, fmt.Errorf("find out whether %s carries %s: %w", short(pin), short(fix), err)
		}
		if full[i] == "" {
			return unknown("%s is not in this checkout: fetch it", short(id)), nil
		}
	}
	h := &history{c: c, pin: full[0], applied: map[string]bool{}}
	answer, err := h.answer(ctx, full[1])
	if errors.Is(err, errNoFiles) {
		return unknown("this checkout is a partial clone without the files to compare: use a whole one"), nil
	}
	if err != nil {
		return Carriage{}, fmt.Errorf("find out whether %s carries %s: %w", short(pin), short(fix), err)
	}
	return answer, nil
}

// history is what is known of one fix in the history of one pin.
type history struct {
	c        *Checkout
	pin      string
	fix      *commit
	change   *change
	ancestor bool // the fix itself is in the history
	scope    []string

	// applied tells of every commit that matters, of this history or not,
	// whether it applies the fix (true) or undoes it.
	applied map[string]bool
	// inside are those of them that are in the history.
	inside map[string]bool
	// twofold both apply and undo it, if their messages are right.
	twofold []string
	// why says how a commit came among them, where it is not its patch.
	why map[string]string
	// named are the commits of the history that say something of others.
	named map[string]*commit
	says  map[string]mention
	// targets are the commits that are named, by the names as written.
	targets map[string]*commit
}

func (h *history) answer(ctx context.Context, fix string) (Carriage, error) {
	if err := h.start(ctx, fix); err != nil {
		return Carriage{}, err
	}
	if h.c.edges[h.fix.id] {
		return unknown("the history is shallow: %s is at its edge: %s", short(fix), unshallow), nil
	}
	if err := h.byPatch(ctx); err != nil {
		return Carriage{}, err
	}
	if err := h.byMessage(ctx); err != nil {
		return Carriage{}, err
	}
	tips, err := h.tips(ctx)
	if err != nil {
		return Carriage{}, err
	}
	answer, sure := h.weigh(tips)
	if !sure {
		return answer, nil
	}
	doubt, err := h.doubt(ctx, tips, answer)
	if err != nil {
		return Carriage{}, err
	}
	if doubt != nil {
		return *doubt, nil
	}
	return answer, nil
}

// start reads the fix and where to look: what comes before it in the history
// does not matter when it is there itself.
func (h *history) start(ctx context.Context, fix string) error {
	found, err := h.c.commits(ctx, []string{fix})
	if err != nil {
		return err
	}
	h.fix = found[fix]
	if h.fix == nil {
		return fmt.Errorf("commit %s cannot be read", fix)
	}
	if h.ancestor, err = h.c.ancestor(ctx, fix, h.pin); err != nil {
		return err
	}
	h.scope = []string{h.pin}
	h.inside, h.why = map[string]bool{}, map[string]string{}
	h.applied[fix] = true
	if h.ancestor {
		h.scope = append(h.scope, "^"+fix)
		h.inside[fix] = true
	}
	return nil
}

// byPatch finds the commits that do or undo just what the fix does.
func (h *history) byPatch(ctx context.Context) (err error) {
	if h.change, err = h.c.change(ctx, h.fix); err != nil || len(h.change.files) == 0 {
		return err
	}
	args := append([]string{"--full-history", "--no-merges"}, h.scope...)
	ids, err := h.c.revList(ctx, append(args, "--", h.change.files[0])...)
	if err != nil {
		return err
	}
	same, undone, err := h.c.samePatch(ctx, h.change, ids)
	if err != nil {
		return err
	}
	for _, id := range same {
		h.applied[id], h.inside[id] = true, true
	}
	for _, id := range undone {
		h.applied[id], h.inside[id] = false, true
	}
	return nil
}

// byMessage finds the commits that say they revert one of those known, or
// revert such a revert, until there are no more.
func (h *history) byMessage(ctx context.Context) error {
	ids, err := h.c.revList(ctx, append(slices.Clone(grepMentions), h.scope...)...)
	if err != nil {
		return err
	}
	if h.named, err = h.c.commits(ctx, ids); err != nil {
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

// independent drops the commits that others of them follow.
func (h *history) independent(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) < 2 {
		return ids, nil
	}
	out, err := h.c.git(ctx, nil, append([]string{"merge-base", "--independent"}, ids...)...)
	if err != nil {
		return nil, fmt.Errorf("order commits: %w", err)
	}
	tips := strings.Fields(string(out))
	slices.Sort(tips)
	return tips, nil
}

// tips are the last commits of the history that apply or undo the fix.
func (h *history) tips(ctx context.Context) ([]string, error) {
	return h.independent(ctx, slices.Sorted(maps.Keys(h.inside)))
}

// weigh makes an answer of the last commits that matter. It is not sure when
// nothing can make it more doubtful.
func (h *history) weigh(tips []string) (answer Carriage, sure bool) {
	var applied, undone []string
	for _, id := range tips {
		if slices.Contains(h.twofold, id) {
			return unknown("%s says that it reverts the fix and a revert of it", short(id)), false
		}
		if h.applied[id] {
			applied = append(applied, id)
		} else {
			undone = append(undone, id)
		}
	}
	switch {
	case len(tips) == 0:
		return notCarried("not in the history of the pin"), true
	case len(undone) == 0:
		return carried(h.appliedBy(applied)), true
	case len(applied) == 0:
		return notCarried("reverted by " + short(undone[0])), true
	}
	return unknown("applied in %s and reverted in %s on different branches", short(applied[0]), short(undone[0])), false
}

func (h *history) appliedBy(tips []string) string {
	if slices.Contains(tips, h.fix.id) {
		return "ancestor of the pin"
	}
	tip := tips[0]
	how := "same patch as " + short(tip)
	if h.why[tip] != "" {
		how = short(tip) + " reverts the revert " + short(h.why[tip])
	}
	for _, id := range slices.Sorted(maps.Keys(h.inside)) {
		if !h.applied[id] {
			return "reverted by " + short(id) + ", applied again: " + how
		}
	}
	return how
}
