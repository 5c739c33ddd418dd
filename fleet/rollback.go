package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// RollbackOptions says how a rollback is done.
type RollbackOptions struct {
	Again   bool          // one further back than the rollback goes from here, or than the last one went
	Undo    bool          // return to what the last rollback left, and lift its block
	Reason  string        // why what is left is blocked; "": it was rolled back
	Restart bool          // restart the service afterwards, with health check
	Watch   time.Duration // how long the restarted service is watched after it answered; 0: not
}

// Rollback arms the last package that the unit was seen serving from before the armed one, and blocks the armed
// one. Repeated, it changes nothing. It needs neither a manager (Outcome.Loaded is then false), nor space on the
// disk, nor the journal, nor the store's lock. It refuses only a target that is damaged; the error then wraps
// [packager.ErrIntegrity] and names what can be gone to instead.
//
// With Again it goes one further back and may need space; the error wraps [ErrRefused] where nothing is further
// back. With Undo it returns to what was left, and changes nothing where nothing was rolled back.
func (h *Host) Rollback(ctx context.Context, unit string, opts RollbackOptions) (*Outcome, error) {
	act := opts.act(unit)
	s, err := h.beginBack(ctx, unit, act, opts)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.goBack(ctx, opts, out); err != nil {
			return fmt.Errorf("%s: %w", opts.verb(s.unit), err)
		}
		if !opts.Restart {
			return nil
		}
		if s.m == nil {
			return fmt.Errorf("restart %s: %w", s.unit, systemd.ErrNoBus)
		}
		if !out.Changed {
			if runs, err := s.runsArmed(ctx); err != nil || runs {
				out.Notes = append(out.Notes, "it runs that package already and was not restarted")
				return err
			}
		}
		return s.restart(ctx, opts.Watch, out)
	})
}

// verb says what is done to the unit's files, act also what to its processes.
func (o RollbackOptions) verb(unit string) string {
	switch {
	case o.Undo:
		return "undo the rollback of " + unit
	case o.Again:
		return "roll back " + unit + " one further"
	}
	return "roll back " + unit
}

func (o RollbackOptions) act(unit string) string {
	if o.Restart {
		return o.verb(unit) + " and restart it"
	}
	return o.verb(unit)
}

// runsArmed tells whether all that runs of the unit runs from what is armed.
func (s *session) runsArmed(ctx context.Context) (bool, error) {
	v, err := s.view(ctx)
	if err != nil {
		return false, err
	}
	live, _, err := s.h.live(v.loaded, v.place, v.armed.keys())
	if err != nil {
		return false, err
	}
	return live != nil && !live.Unreadable && v.loaded.ActiveState == "active" && !pending(v.loaded, live, v.armed.pkg(v.place)), nil
}

// loadRest has the manager load what an earlier act could only write.
func (s *session) loadRest(ctx context.Context, out *Outcome) error {
	if s.m == nil {
		out.Loaded = false
		return nil
	}
	v, err := s.view(ctx)
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("whether all of it is loaded cannot be told: %v", err))
		return nil
	}
	if slices.Equal(v.armed, v.onDisk) {
		return nil
	}
	if err := s.reload(ctx); err != nil {
		out.Loaded = false
		return err
	}
	out.From, out.Changed = v.armed.pkg(v.place).Name, true
	out.Notes = append(out.Notes, "it is loaded now")
	return nil
}

// removalWait is how long a rollback waits for a removal of packages. It goes on without the store's lock then: what
// it goes to is named in the unit's files, and no removal takes that.
const removalWait = time.Second

// beginBack is begin for an act that goes on where others must stop: without a manager, without the store's lock. The
// owner is asked before any lock is taken, and only where something is to change.
func (h *Host) beginBack(ctx context.Context, unit, act string, opts RollbackOptions) (*session, error) {
	s := &session{h: h, began: h.Now(), place: h.place()}
	ok := false
	defer func() {
		if !ok {
			s.end()
		}
	}()
	fail := func(err error) (*session, error) { return nil, fmt.Errorf("%s: %w", act, err) }
	if err := s.find(ctx, unit); err != nil {
		return fail(err)
	}
	if !h.exists(s.unit) {
		return fail(fmt.Errorf("%w: %s was never switched by this program", ErrRefused, s.unit))
	}
	asked, err := s.agreed(act, opts)
	if err != nil {
		return fail(err)
	}
	if err := s.lockStore(ctx, opts.Undo); err != nil {
		return fail(err)
	}
	if err := s.lock(ctx); err != nil {
		return fail(err)
	}
	s.settle(ctx)
	if asked != nil {
		now, _, err := s.lookBack(opts)
		if err == nil && (!now.from.same(asked.from) || !now.to.same(asked.to)) {
			return fail(fmt.Errorf("%w: while the owner was asked it was moved: see what is true now and ask again", ErrRefused))
		}
	}
	ok = true
	return s, nil
}

// find connects and gives the unit its name, also without a manager and where only our files are left of it.
func (s *session) find(ctx context.Context, unit string) (err error) {
	if s.unit, err = s.h.serviceName(ctx, unit); err != nil {
		return err
	}
	if s.m, err = s.h.Connect(ctx); err == nil {
		s.undo = append(s.undo, s.m.Close)
		err = s.known(ctx)
	}
	if err != nil {
		if ctx.Err() != nil || !s.h.traces(s.unit) {
			return err
		}
		s.m = nil
		s.notes = append(s.notes, fmt.Sprintf("written, not loaded: %v", err))
	}
	return nil
}

// agreed asks the owner, with what would change. It returns what he agreed to, nil where he was not asked.
func (s *session) agreed(act string, opts RollbackOptions) (*away, error) {
	if s.h.Authorise == nil {
		return nil, nil
	}
	if (pair{s.h.dropInDir(s.unit)}).staged() { // it has to be settled before it can be told
		return nil, s.h.authorise(act)
	}
	w, done, err := s.lookBack(opts)
	if err != nil || done != "" && !opts.Restart {
		return nil, err
	}
	if done != "" {
		return &w, s.h.authorise(act, done)
	}
	to := or(w.to.Name, "what the unit's own files say")
	note := fmt.Sprintf("it goes from %s to %s", orNothing(w.from.Name), to)
	switch {
	case w.undo:
		note += ", whose block is lifted"
	case !w.from.isZero():
		note += fmt.Sprintf(", and %s is blocked for it", w.from.Name)
	}
	return &w, s.h.authorise(act, note)
}

// lockStore keeps packages from being removed meanwhile. sure tells whether the act needs that.
func (s *session) lockStore(ctx context.Context, sure bool) error {
	wait, cancel := context.WithTimeout(ctx, removalWait)
	defer cancel()
	unlock, err := s.h.Store.LockShared(wait)
	switch {
	case err == nil:
		s.undo = append(s.undo, unlock)
	case ctx.Err() != nil:
		return ctx.Err()
	case sure && errors.Is(err, store.ErrBusy):
		return err
	default:
		s.notes = append(s.notes, fmt.Sprintf("the store is not locked meanwhile: %v", err))
	}
	return nil
}

// settle finishes or undoes what an earlier command left, as far as that can be, and notes the rest.
func (s *session) settle(ctx context.Context) {
	notes, err := s.h.recover(ctx, s.m, s.unit)
	if err != nil && s.m != nil { // the manager may be what is wrong: the files can be settled without it
		notes = append(notes, err.Error())
		var more []string
		more, err = s.h.recover(ctx, nil, s.unit)
		notes = append(notes, more...)
	}
	if err != nil {
		notes = append(notes, err.Error())
	}
	s.notes = append(s.notes, notes...)
}

// known asks the manager for what a rollback and an unswitch can do without. A unit of which only our files are left is no error.
func (s *session) known(ctx context.Context) (err error) {
	if s.specs, err = s.m.Specifiers(ctx); err != nil {
		return err
	}
	u, err := s.m.Unit(ctx, s.unit)
	if err == nil {
		s.unit = u.ID
	} else if errors.Is(err, systemd.ErrNoUnit) && s.h.traces(s.unit) {
		err = nil
	}
	return err
}

// lookBack works out, from our files alone, where the act goes. done says why it changes nothing.
func (s *session) lookBack(opts RollbackOptions) (w away, done string, err error) {
	v := &view{place: s.place}
	if err := v.readPair(pair{s.h.dropInDir(s.unit)}); err != nil {
		return w, "", err
	}
	return v.goingBack(opts)
}

// goingBack is where the options lead from what our files say.
func (v *view) goingBack(opts RollbackOptions) (w away, done string, err error) {
	if errors.Is(v.activeErr, ErrRefused) {
		return w, "", v.activeErr
	}
	if v.active == nil && v.activeErr == nil && v.prev == nil && v.prevErr == nil {
		return w, "", fmt.Errorf("%w: there is no switch to roll back", ErrRefused)
	}
	switch {
	case opts.Undo:
		return v.back()
	case opts.Again:
		w, err = v.further()
		return w, "", err
	}
	w, done = v.away()
	return w, done, nil
}

// errNowhere says that a package failed and nothing else is known to have served before it.
var errNowhere = errors.New("there is nothing to go back to")

// disarm is the return of a service whose package failed, to what a rollback by hand would go to.
func (s *session) disarm(ctx context.Context, reason string, out *Outcome) error {
	return s.change(ctx, RollbackOptions{Reason: reason}, actReturn, out)
}

// goBack is a rollback by hand.
func (s *session) goBack(ctx context.Context, opts RollbackOptions, out *Outcome) error {
	act := actRollback
	if opts.Undo {
		act = actUndo
	}
	return s.change(ctx, opts, act, out)
}

// change works out where the options lead, checks it, and goes there.
func (s *session) change(ctx context.Context, opts RollbackOptions, act string, out *Outcome) error {
	files := pair{s.h.dropInDir(s.unit)}
	v := &view{place: s.place}
	if err := v.readPair(files); err != nil {
		return err
	}
	w, done, err := v.goingBack(opts)
	if err != nil {
		return err
	}
	if done != "" {
		out.From, out.To = w.to.Name, w.to.Name
		out.Notes = append(out.Notes, done)
		return s.loadRest(ctx, out)
	}
	switch {
	case w.way == wayAway:
		w.from, w.to = s.bare(ctx, w)
	case w.way == wayBack:
		w.from, _ = s.bare(ctx, w)
	}
	if err := s.verifyTarget(ctx, v, w, opts); err != nil {
		return err
	}
	if b, bad := blocked(v.blocks(), w.to); bad && !w.undo && !w.to.isZero() {
		if opts.Again {
			return fmt.Errorf("%w: further back is only %s, which is blocked: %s (lift it with: 1bit pkg unblock %s %s)",
				ErrRefused, w.to.Name, b.Reason, s.unit, w.to.Name)
		}
		out.Notes = append(out.Notes, fmt.Sprintf("%s is blocked for this service all the same: %s", w.to.Name, b.Reason))
	}
	if err := s.make(v, &w, opts.Reason); err != nil {
		return err
	}
	out.From, out.To = w.from.Name, w.to.Name
	if pkg := s.place.pkg(w.to.Path); pkg != nil {
		for _, problem := range s.h.Missing(pkg.Manifest) {
			out.Notes = append(out.Notes, fmt.Sprintf("%s wants something of this host: %s", w.to.Name, problem))
		}
	}
	return s.putAway(ctx, files, v, w, act, opts.Reason, out)
}

// make makes the files that a way lacks.
func (s *session) make(v *view, w *away, reason string) error {
	switch {
	case w.way == wayAnew:
		return s.anew(v, w, reason)
	case w.rebuilt:
		d, err := v.rebuild(w.to)
		if err == nil {
			w.file, err = d.Encode()
		}
		return err
	}
	return nil
}

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
// back, else any good package that is not blocked.
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
		return "no other good package is installed: install one, and switch to it"
	}
	also := ""
	if len(others) > 1 {
		also = " (also good: " + strings.Join(others[1:], ", ") + ")"
	}
	return fmt.Sprintf("switch to a good one, with: 1bit pkg switch %s %s%s", s.unit, others[0], also)
}
