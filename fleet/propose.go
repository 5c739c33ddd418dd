package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager/store"
)

// ProposeOptions says how a switch is proposed.
type ProposeOptions struct {
	Reason string
	Out    string // a file to write instead of the proposal of this state, for an owner under another account
	Verify bool   // check every file of the package
	// Notes is that of [SwitchOptions].
	Notes func(from string) []string
}

// Propose suggests a switch to the owner. It does the whole look of a switch and fails as that would; it changes
// nothing that runs or will run, and asks nobody. Outcome.Changed tells whether there is a new proposal.
func (h *Host) Propose(ctx context.Context, unit string, pkg *store.Package, opts ProposeOptions) (*Outcome, error) {
	act := fmt.Sprintf("propose %s for %s", pkg.Name, unit)
	return h.perform(ctx, unit, act, true, nil, func(s *session, out *Outcome) error {
		if err := s.propose(ctx, pkg, opts, out); err != nil {
			return fmt.Errorf("%s: %w", act, err)
		}
		return nil
	})
}

func (s *session) propose(ctx context.Context, pkg *store.Package, opts ProposeOptions, out *Outcome) error {
	h := s.h
	if len(opts.Reason) > maxReason {
		return fmt.Errorf("%w: the reason has more than %d bytes", ErrRefused, maxReason)
	}
	_, p, err := s.scan(ctx, pkg, opts.Verify, opts.Notes)
	if err != nil {
		return err
	}
	out.From, out.To = p.from.Name, pkg.Name
	out.Notes = append(out.Notes, p.notes...)
	if p.next == nil {
		out.Notes = append(out.Notes, fmt.Sprintf("%s is armed already: there is nothing to propose", pkg.Name))
		return nil
	}
	if err := h.unheld(s.unit); err != nil {
		out.Notes = append(out.Notes, "it cannot be taken yet: "+strings.TrimPrefix(err.Error(), ErrRefused.Error()+": "))
	}
	// The time is cut to what the file holds.
	proposal := &Proposed{
		Unit: s.unit, Scope: h.Scope, Package: pkg.Name, Digest: pkg.Digest,
		By: h.User, At: h.Now().UTC().Truncate(time.Second), Reason: strings.TrimSpace(opts.Reason),
	}
	data, err := proposal.Encode()
	if err != nil {
		return err
	}
	if _, err := DecodeProposal(data); err != nil {
		return err // the owner could not read it
	}
	path, perm := opts.Out, fs.FileMode(0o644)
	if path == "" {
		path, perm = h.proposalPath(s.unit), 0o600
		if err := atomicfile.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return unwritable(h.StateDir, err)
		}
		lock, err := lockDir(ctx, filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("lock the folder of proposals: %w", err)
		}
		defer lock.release()
		sweep(path)
	}
	switch there, err := ReadProposal(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && opts.Out != "":
		return fmt.Errorf("%w: %s is there already and is no proposal: name another file", ErrRefused, path)
	case err == nil:
		out.Notes = append(out.Notes, fmt.Sprintf("replaces the proposal of %s by %s", there.Package, there.By))
	}
	if err := atomicfile.Write(path, data, perm); err != nil {
		return unwritable(filepath.Dir(path), err)
	}
	out.Changed = true
	h.log().Info("proposed", "unit", s.unit, "package", pkg.Name, "file", path)
	return nil
}

// sweep removes what writes of a file left behind that were cut off. The caller holds the folder's lock.
func sweep(path string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.tmp"))
	for _, temp := range left {
		if strings.HasPrefix(filepath.Base(temp), "."+filepath.Base(path)+".") {
			_ = os.Remove(temp)
		}
	}
}

// Proposal is what is proposed for a unit. The error wraps [fs.ErrNotExist] where nothing is.
func (h *Host) Proposal(ctx context.Context, unit string) (*Proposed, error) {
	name, err := h.proposedUnit(ctx, unit)
	if err != nil {
		return nil, fmt.Errorf("look for a proposal: %w", err)
	}
	p, err := h.proposal(name)
	if err == nil && p == nil {
		err = nothing(fmt.Sprintf("nothing is proposed for %s: name the package (1bit pkg switch %s ID)", name, name))
	}
	return p, err
}

// proposedUnit is the name that a unit's proposal has: that of the unit, where an alias is given.
func (h *Host) proposedUnit(ctx context.Context, unit string) (string, error) {
	full, err := h.serviceName(ctx, unit)
	if err != nil {
		return "", err
	}
	if _, err := readFields(h.proposalPath(full)); !errors.Is(err, fs.ErrNotExist) {
		return full, nil
	}
	m, err := h.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer m.Close()
	u, err := m.Unit(ctx, full)
	if err != nil {
		return "", err
	}
	return u.ID, nil
}

// Withdraw removes what is proposed for a unit, also what cannot be read. The error wraps [fs.ErrNotExist] where
// nothing is proposed.
func (h *Host) Withdraw(ctx context.Context, unit string) (was *Proposed, err error) {
	name, err := h.proposedUnit(ctx, unit)
	if err != nil {
		return nil, fmt.Errorf("withdraw a proposal: %w", err)
	}
	was, _ = h.proposal(name)
	err = atomicfile.Remove(h.proposalPath(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nothing("nothing is proposed for " + name)
	case err != nil:
		return nil, fmt.Errorf("withdraw the proposal for %s: %w", name, unwritable(h.StateDir, err))
	}
	return was, nil
}

// fulfil removes the proposal of the package that is armed now: it has been taken.
func (s *session) fulfil(armed PackageRef, out *Outcome) {
	p, err := s.h.proposal(s.unit)
	if err != nil || p == nil || !armed.same(PackageRef{Name: p.Package, Digest: p.Digest}) {
		return
	}
	if err := atomicfile.Remove(s.h.proposalPath(s.unit)); err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("its proposal could not be removed: %v", err))
	}
}

// nothing is an error about something that is not there, in words of its own: it is [fs.ErrNotExist].
type nothing string

func (n nothing) Error() string { return string(n) }

// Is makes it one of the errors about what does not exist.
func (n nothing) Is(target error) bool { return target == fs.ErrNotExist }
