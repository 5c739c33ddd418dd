package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// GCOptions are for [Store.GC]. A package goes only if neither Keep nor
// KeepDays keeps it.
type GCOptions struct {
	// Keep is how many of each flavour stay, those that were installed last. A
	// broken one is not counted.
	Keep int
	// KeepDays is how many days ago a package may have been installed to stay.
	KeepDays int
	// Now is what the days are counted from.
	Now time.Time
	// DryRun removes nothing.
	DryRun bool
}

// A Decision is what [Store.GC] did with one package, and why it stays; no
// reason means that it went, or would.
type Decision struct {
	Package *Package
	Reasons []string
}

// GC removes the packages of this store that nothing needs and that the
// options do not keep. Never removed are imported packages, which [Store.Remove]
// takes, and those of a package manager. inUse is asked once, while the store
// is held alone; what it returns gives the reasons for one package.
//
// It returns what was decided for every package of the store, sorted by name;
// if the error is not nil, those that it got to. Errors wrap what those of
// Remove do.
func (s *Store) GC(ctx context.Context, opts GCOptions, inUse func(context.Context) (func(*Package) []string, error)) ([]Decision, error) {
	decisions, err := s.gc(ctx, opts, inUse)
	if err != nil {
		return decisions, fmt.Errorf("remove what nothing needs from %s: %w", s.Dir, err)
	}
	return decisions, nil
}

func (s *Store) gc(ctx context.Context, opts GCOptions, inUse func(context.Context) (func(*Package) []string, error)) ([]Decision, error) {
	if err := s.mayRemove(); err != nil {
		return nil, err
	}
	s.sweep(ctx)
	lock := s.lockAlone
	if opts.DryRun {
		lock = func(ctx context.Context, what string) (func(), error) { return s.lock(ctx, false, what) }
	}
	unlock, err := lock(ctx, "gc")
	if err != nil {
		return nil, err
	}
	defer unlock()
	list, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	byName(list)
	uses, err := inUse(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out what is used: %w", err)
	}
	needed, err := s.needed(ctx, func(p *Package) ([]string, error) { return uses(p), nil })
	if err != nil {
		return nil, err
	}
	newest := newestOf(list, opts.Keep)
	var decisions []Decision
	for _, p := range list {
		reasons, err := needed(p)
		if err != nil {
			return decisions, err
		}
		reasons = append(reasons, kept(p, opts, newest[p])...)
		if len(reasons) == 0 && !opts.DryRun {
			if err := s.take(ctx, p); err != nil {
				return decisions, fmt.Errorf("remove %s: %w", p.Name, err)
			}
		}
		decisions = append(decisions, Decision{p, reasons})
	}
	return decisions, nil
}

// kept lists why a package stays although nothing needs it.
func kept(p *Package, opts GCOptions, newest bool) []string {
	switch {
	case p.native != nil:
		return []string{fmt.Sprintf("installed by %s: %s", p.native.program, p.native.removal)}
	case p.Imported:
		return []string{"imported: only 1bit pkg remove takes it"}
	}
	var reasons []string
	if newest {
		what := fmt.Sprintf("one of the last %d of flavour %s", opts.Keep, p.Manifest.Flavour)
		if opts.Keep == 1 {
			what = "the last of flavour " + p.Manifest.Flavour
		}
		reasons = append(reasons, what)
	}
	if opts.KeepDays > 0 && opts.Now.Sub(p.InstalledAt) < time.Duration(opts.KeepDays)*24*time.Hour {
		reasons = append(reasons, "installed on "+p.InstalledAt.Format("2006-01-02 15:04"))
	}
	return reasons
}

// newestOf picks the last n of each flavour that were installed here, broken
// ones apart.
func newestOf(list []*Package, n int) map[*Package]bool {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *Package) int {
		return cmp.Or(b.InstalledAt.Compare(a.InstalledAt), cmp.Compare(a.Name, b.Name))
	})
	newest, of := map[*Package]bool{}, map[string]int{}
	for _, p := range list {
		flavour := p.Manifest.Flavour
		if p.InstalledBy == InstalledByUs && p.State != StateBroken && of[flavour] < n {
			newest[p] = true
			of[flavour]++
		}
	}
	return newest
}
