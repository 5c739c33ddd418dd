package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// diffTree is git diff-tree without anything that a configuration or an
// attribute could change, both sides named alike, so that a patch backwards
// has the form of a patch.
var diffTree = []string{"diff-tree", "--stdin", "-r", "--root", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}

var patchForm = []string{
	"-p", "--full-index", "--submodule=short", "-U3", "--inter-hunk-context=0", "--diff-algorithm=myers",
	"--indent-heuristic", "--src-prefix=a/", "--dst-prefix=a/",
}

// change is what the fix does: its files, and its patch forwards and back.
type change struct {
	files []string
	line  string // what diff-tree reads: the commit, and for a merge its first parent
	// ids says how a patch id is asked for.
	ids []string

	forward, back string
	// exact are the same two with every byte of white space.
	exact [2]string
}

var errNoFiles = errors.New("files of the history are not in this checkout")

// change reads which files the fix touches.
func (c *Checkout) change(ctx context.Context, fix *commit) (*change, error) {
	ch := &change{line: fix.id}
	if len(fix.parents) > 1 {
		ch.line += " " + fix.parents[0]
	}
	touched, err := c.touched(ctx, []string{ch.line})
	if err != nil {
		return nil, err
	}
	ch.files = touched[fix.id]
	return ch, nil
}

// touched returns the files that commits touch, sorted.
func (c *Checkout) touched(ctx context.Context, lines []string) (map[string][]string, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	out, err := c.git(ctx, []byte(strings.Join(lines, "\n")+"\n"), append(slices.Clone(diffTree), "--raw", "--full-index", "-z")...)
	if err != nil {
		return nil, c.unreadable(ctx, err)
	}
	touched, err := parseRaw(out)
	if err != nil {
		return nil, fmt.Errorf("compare commits of %s: %w", c.Dir, err)
	}
	return touched, nil
}

// parseRaw reads git's raw differences with NULs: a commit, then for each file
// what begins with a colon, and its path.
func parseRaw(b []byte) (map[string][]string, error) {
	touched := map[string][]string{}
	id := ""
	for len(b) > 0 {
		field, rest, ok := bytes.Cut(b, []byte{0})
		if !ok {
			return nil, fmt.Errorf("git's list of files ends early at %q", field)
		}
		b = rest
		if len(field) == 0 || field[0] != ':' {
			if id = string(field); !fullPattern().MatchString(id) {
				return nil, fmt.Errorf("git's list of files has %q, which is not understood", field)
			}
			continue
		}
		path, rest, ok := bytes.Cut(b, []byte{0})
		if !ok || id == "" || len(path) == 0 {
			return nil, fmt.Errorf("git's list of files ends early at %q", field)
		}
		b = rest
		touched[id] = append(touched[id], string(path))
	}
	for _, files := range touched {
		slices.Sort(files)
	}
	return touched, nil
}

// sorted are the commits that do what a change does, and those that undo it;
// loose ones with other white space, by whether they do it.
type sorted struct {
	same, undone []string
	loose        map[string]bool
}

// samePatch sorts commits by what they do of the change.
func (c *Checkout) samePatch(ctx context.Context, ch *change, ids []string) (found sorted, err error) {
	found.loose = map[string]bool{}
	touched, err := c.touched(ctx, ids)
	if err != nil {
		return found, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Equal(touched[id], ch.files) || c.edges[id] })
	if len(ids) == 0 {
		return found, nil
	}
	if err := c.identify(ctx, ch); err != nil {
		return found, err
	}
	patches, err := c.patchIDs(ctx, ch.ids, ids)
	if err != nil {
		return found, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return patches[id] == "" || patches[id] != ch.forward && patches[id] != ch.back
	})
	if len(ids) == 0 {
		return found, nil
	}
	exact, err := c.patchIDs(ctx, verbatim, ids)
	if err != nil {
		return found, err
	}
	for _, id := range ids {
		switch {
		case exact[id] == ch.exact[0]:
			found.same = append(found.same, id)
		case exact[id] == ch.exact[1]:
			found.undone = append(found.undone, id)
		default:
			found.loose[id] = patches[id] == ch.forward
		}
	}
	return found, nil
}

var stable, verbatim = []string{"patch-id", "--stable"}, []string{"patch-id", "--verbatim"}

// identify finds the patch ids of the change. A stable id does not see white
// space; of a change in nothing else it is the same forwards and back, and
// then only the exact ones are looked for.
func (c *Checkout) identify(ctx context.Context, ch *change) error {
	both := func(how []string) (ids [2]string, err error) {
		for i, extra := range [][]string{nil, {"-R"}} {
			patches, err := c.patchIDs(ctx, how, []string{ch.line}, extra...)
			if err != nil {
				return ids, err
			}
			ids[i] = patches[strings.Fields(ch.line)[0]]
		}
		return ids, nil
	}
	ids, err := both(stable)
	if err != nil {
		return err
	}
	if ch.exact, err = both(verbatim); err != nil {
		return err
	}
	ch.ids = stable
	if ids[0] == ids[1] {
		ch.ids, ids = verbatim, ch.exact
	}
	ch.forward, ch.back = ids[0], ids[1]
	return nil
}

// patchIDs returns git's patch id of each commit that has one.
func (c *Checkout) patchIDs(ctx context.Context, how, lines []string, extra ...string) (map[string]string, error) {
	args := append(append(slices.Clone(diffTree), patchForm...), extra...)
	patches, err := c.git(ctx, []byte(strings.Join(lines, "\n")+"\n"), args...)
	if err != nil {
		return nil, c.unreadable(ctx, err)
	}
	out, err := c.git(ctx, patches, how...)
	if err != nil {
		return nil, fmt.Errorf("compare patches: %w", err)
	}
	return parsePatchIDs(out)
}

// parsePatchIDs reads lines of a patch id and the commit that it is of.
func parsePatchIDs(b []byte) (map[string]string, error) {
	ids := map[string]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 2 || !fullPattern().MatchString(f[0]) || !fullPattern().MatchString(f[1]) {
			return nil, fmt.Errorf("git's list of patch ids has %q, which is not understood", line)
		}
		ids[f[1]] = f[0]
	}
	return ids, nil
}

// unreadable tells a partial clone, which has only some of the files, from
// other reasons why differences cannot be read.
func (c *Checkout) unreadable(ctx context.Context, err error) error {
	var g *gitError
	if !errors.As(err, &g) {
		return err
	}
	out, cerr := c.git(ctx, nil, "config", "--get-regexp", `^(remote\..*\.promisor|extensions\.partialclone)$`)
	if cerr == nil && len(out) > 0 {
		return fmt.Errorf("%w: %w", errNoFiles, err)
	}
	return fmt.Errorf("compare commits: %w", err)
}

// Files returns the paths that a commit changes, sorted; of a merge those that
// differ from its first parent. A commit that is not there has none.
func (c *Checkout) Files(ctx context.Context, id string) ([]string, error) {
	full, err := c.resolve(ctx, id)
	if err != nil || full == "" {
		return nil, err
	}
	found, err := c.commits(ctx, []string{full})
	if err != nil || found[full] == nil {
		return nil, err
	}
	ch, err := c.change(ctx, found[full])
	if err != nil {
		return nil, err
	}
	return ch.files, nil
}
