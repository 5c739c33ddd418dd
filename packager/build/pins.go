package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/engine/source"
	"github.com/1bit-systems/pkg/packager"
)

// ErrDirty is wrapped when a checkout has changes that no commit holds and
// nobody said that this is meant.
var ErrDirty = errors.New("the checkout has changes that no commit holds")

const maxNamed = 5 // files that a message names

// checkout is the source of one component, as it was when the build began.
type checkout struct {
	*source.Checkout
	head  string
	dirty []string // tracked files with changes
}

// pins establishes the commits of the recipe's components: those with a
// checkout from it, the others as they are declared.
func pins(ctx context.Context, r *Recipe, o Options) (map[string]*checkout, error) {
	checkouts := map[string]*checkout{}
	for _, name := range slices.Sorted(maps.Keys(o.Sources)) {
		if !slices.ContainsFunc(r.Components, func(c packager.Component) bool { return c.Name == name }) {
			return nil, fmt.Errorf("source %s=%s: %s has no component of that name, it has %s: %w",
				name, o.Sources[name], r.file, strings.Join(componentNames(r.Components), ", "), ErrRecipe)
		}
		c, err := readCheckout(ctx, o.Sources[name])
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		if len(c.dirty) > 0 && !o.AllowDirty {
			return nil, fmt.Errorf("source %s: %s: %s: commit them, or allow them: %w", name, c.Dir, listFiles(c.dirty), ErrDirty)
		}
		checkouts[name] = c
	}
	for i := range r.Components {
		if err := pin(r, &r.Components[i], checkouts[r.Components[i].Name]); err != nil {
			return nil, err
		}
	}
	return checkouts, nil
}

func readCheckout(ctx context.Context, dir string) (*checkout, error) {
	c, err := source.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	head, dirty, err := c.Head(ctx)
	if err != nil {
		return nil, err
	}
	return &checkout{c, head, dirty}, nil
}

// pin sets one component's commit.
func pin(r *Recipe, c *packager.Component, from *checkout) error {
	key := "components." + c.Name
	switch {
	case from == nil && c.Commit == "":
		return r.wrong(key, fmt.Errorf("has no commit: add the one that was built, or name its checkout (--source %s=DIR)", c.Name))
	case from == nil:
		return nil
	case !strings.HasPrefix(from.head, c.Commit):
		return r.wrong(key, fmt.Errorf("the recipe says commit %s, and the checkout %s is at %s: correct the recipe or leave its commit out", c.Commit, from.Dir, from.head))
	}
	c.Commit, c.Declared, c.Dirty = from.head, false, len(from.dirty) > 0
	return nil
}

// defaultID is the id of a package that was not given one, "" if the recipe
// has no engine.
func defaultID(components []packager.Component) string {
	id, dirty := "", ""
	for _, c := range components {
		if c.Name == EngineComponent {
			id = c.Commit[:7]
		}
		if c.Dirty {
			dirty = "-dirty"
		}
	}
	if id == "" {
		return ""
	}
	return id + dirty
}

func componentNames(components []packager.Component) []string {
	var names []string
	for _, c := range components {
		names = append(names, c.Name)
	}
	return names
}

// listFiles names a few of the files.
func listFiles(files []string) string {
	var named []string
	for _, f := range files[:min(len(files), maxNamed)] {
		named = append(named, fmt.Sprintf("%q", f))
	}
	more := ""
	if n := len(files) - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(named, ", ") + more
}
