package fleet

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// verifyTarget refuses a target that is not there or not as its digest says.
func (s *session) verifyTarget(ctx context.Context, v *view, w away, opts RollbackOptions) error {
	if w.to.isZero() {
		return nil
	}
	if err := s.good(ctx, w.to); err != nil {
		return fmt.Errorf("%s cannot be gone to: %w; %s", w.to.Name, err, s.offer(ctx, v, w, opts))
	}
	return nil
}

// good tells whether a package is there and as its digest says.
func (s *session) good(ctx context.Context, ref PackageRef) error {
	pkg := s.place.pkg(ref.Path)
	if pkg == nil {
		if _, err := os.Stat(ref.Path); err != nil {
			if absent(err) {
				return fmt.Errorf("%w: it is not there any more (%s): install it again", packager.ErrIntegrity, ref.Path)
			}
			return fmt.Errorf("%w: %w", packager.ErrIntegrity, err)
		}
		return nil // never imported: nothing to compare with
	}
	if ref.Digest != "" && pkg.Digest != ref.Digest {
		return fmt.Errorf("%w: it has the digest %s, not %s", packager.ErrIntegrity, pkg.Digest, ref.Digest)
	}
	return s.h.verify(ctx, pkg, false)
}

// offer says what can be gone to in place of a target that is damaged, by a command that works: what is one further
// back, else any intact package that is not blocked.
func (s *session) offer(ctx context.Context, v *view, w away, opts RollbackOptions) string {
	if !opts.Again && !opts.Undo {
		if next, err := v.further(); err == nil {
			to := next.to
			if next.way == wayAway {
				_, to = s.bare(ctx, next)
			}
			_, bad := blocked(v.blocks(), to)
			if to.isZero() && s.m == nil || !bad && (to.isZero() || s.good(ctx, to) == nil) {
				return fmt.Sprintf("go one further back, to %s, with: 1bit pkg rollback --again %s", or(to.Name, "what the unit's own files say"), s.unit)
			}
		}
	}
	var others []string
	if all, err := s.h.Store.List(ctx); err == nil {
		for _, p := range all {
			_, bad := blocked(v.blocks(), refOf(p))
			if p.State == store.StateOK && !bad && !refOf(p).same(w.to) && !refOf(p).same(w.from) {
				others = append(others, p.Name)
			}
		}
	}
	if len(others) == 0 {
		return "no other intact package is installed: install one, and switch to it"
	}
	also := ""
	if len(others) > 1 {
		also = " (also intact: " + strings.Join(others[1:], ", ") + ")"
	}
	return fmt.Sprintf("switch to one that is intact, with: 1bit pkg switch %s %s%s", s.unit, others[0], also)
}
