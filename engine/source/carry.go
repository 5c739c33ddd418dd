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

const unshallow = "git fetch --unshallow"

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
		switch {
		case full[i] != "":
		case len(c.edges) > 0:
			return unknown("%s is not in this checkout, whose history is shallow: %s", id, unshallow), nil
		default:
			return unknown("%s is not in this checkout: fetch it", id), nil
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
	// loose apply (true) or undo it but for white space.
	loose map[string]bool
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
	if h.fix.id == h.pin {
		return carried("the pin itself"), nil // whatever came before
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
	answer, sure, err := h.weigh(ctx, tips)
	if err != nil {
		return Carriage{}, err
	}
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
	found, err := h.c.samePatch(ctx, h.change, ids)
	if err != nil {
		return err
	}
	h.loose = found.loose
	for _, id := range found.same {
		h.applied[id], h.inside[id] = true, true
	}
	for _, id := range found.undone {
		h.applied[id], h.inside[id] = false, true
	}
	return nil
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
func (h *history) weigh(ctx context.Context, tips []string) (answer Carriage, sure bool, err error) {
	var applied, undone []string
	for _, id := range tips {
		if slices.Contains(h.twofold, id) {
			return unknown("%s says that it reverts the fix and a revert of it", short(id)), false, nil
		}
		if h.applied[id] {
			applied = append(applied, id)
		} else {
			undone = append(undone, id)
		}
	}
	switch {
	case len(undone) == 0 && len(applied) > 0:
		how, err := h.appliedBy(ctx, applied)
		return carried(how), true, err
	case len(applied) > 0:
		return unknown("applied in %s and reverted in %s on different branches", short(applied[0]), short(undone[0])), false, nil
	}
	// A fix may itself be the revert of something, which then looks like its
	// own revert and was there before.
	for id := range h.inside {
		if h.applied[id] {
			return notCarried("reverted by " + short(undone[0])), true, nil
		}
	}
	return notCarried("not in the history of the pin"), true, nil
}

func (h *history) appliedBy(ctx context.Context, tips []string) (string, error) {
	if slices.Contains(tips, h.fix.id) {
		return "ancestor of the pin", nil
	}
	tip := tips[0]
	how := "same patch as " + short(tip)
	if h.why[tip] != "" {
		how = short(tip) + " reverts the revert " + short(h.why[tip])
	}
	inside := slices.Sorted(maps.Keys(h.inside))
	for _, undone := range inside {
		if h.applied[undone] {
			continue
		}
		for _, id := range inside {
			before, err := false, error(nil)
			if h.applied[id] {
				before, err = h.c.ancestor(ctx, id, undone)
			}
			if err != nil {
				return "", err
			}
			if before {
				return "reverted by " + short(undone) + ", applied again: " + how, nil
			}
		}
	}
	return how, nil
}
