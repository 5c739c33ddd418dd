package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// ErrFixMissing is wrapped when the package does not carry a fix that the
// recipe requires, or when that could not be established.
var ErrFixMissing = errors.New("a required fix is missing")

// fixes says of every fix of the registry whether the package carries it. One
// that the recipe requires must be, surely.
func fixes(ctx context.Context, r *Recipe, checkouts map[string]*checkout) ([]packager.Fix, error) {
	reg, err := r.registry()
	if err != nil || reg == nil {
		return nil, err
	}
	list := slices.Clone(reg.Fixes)
	var missing []string
	for i := range list {
		f := &list[i]
		if err := establish(ctx, r, f, checkouts[f.Component]); err != nil {
			return nil, fmt.Errorf("fix %s: %w", f.ID, err)
		}
		switch {
		case !slices.Contains(r.RequireFixes, f.ID):
		case f.Carried == nil:
			missing = append(missing, fmt.Sprintf("whether %s is carried is unknown: %s", f.ID, f.How))
		case !*f.Carried:
			missing = append(missing, fmt.Sprintf("%s is not carried: %s", f.ID, f.How))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s:%d: require_fixes: %s: %w", r.file, max(r.lines["require_fixes"], 1), strings.Join(missing, "; "), ErrFixMissing)
	}
	return list, nil
}

// establish answers for one fix. All its commits solved the issue together:
// one that is not carried means no, one that is unknown means unknown.
func establish(ctx context.Context, r *Recipe, f *packager.Fix, from *checkout) error {
	if !slices.Contains(componentNames(r.Components), f.Component) {
		f.How = fmt.Sprintf("component %s is not part of this package", f.Component)
		return nil
	}
	if from == nil {
		f.How = fmt.Sprintf("no checkout of %s was given (--source %s=DIR)", f.Component, f.Component)
		return nil
	}
	var no, unknown, yes []string
	for _, commit := range f.Commits {
		carried, how, err := ask(ctx, from, commit)
		if err != nil {
			return err
		}
		if len(f.Commits) > 1 {
			how = commit[:7] + " " + how
		}
		switch {
		case carried == nil:
			unknown = append(unknown, how)
		case *carried:
			yes = append(yes, how)
		default:
			no = append(no, how)
		}
	}
	answer := len(no) == 0
	switch {
	case len(no) > 0:
		f.Carried, f.How = &answer, strings.Join(no, "; ")
	case len(unknown) > 0:
		f.How = strings.Join(unknown, "; ")
	default:
		f.Carried, f.How = &answer, strings.Join(yes, "; ")
	}
	return nil
}

// ask is git's answer about one commit. A yes does not stand while a file of
// the fix has changes that no commit holds.
func ask(ctx context.Context, from *checkout, commit string) (*bool, string, error) {
	c, err := from.Carries(ctx, from.head, commit)
	if err != nil {
		return nil, "", err
	}
	if c.Carried == nil || !*c.Carried || len(from.dirty) == 0 {
		return c.Carried, c.How, nil
	}
	files, err := from.Files(ctx, commit)
	if err != nil {
		return nil, "", err
	}
	for _, f := range files {
		if slices.Contains(from.dirty, f) {
			return nil, fmt.Sprintf("%s, but %q has changes that no commit holds", c.How, f), nil
		}
	}
	return c.Carried, c.How, nil
}
