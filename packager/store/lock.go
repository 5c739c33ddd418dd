package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/gofrs/flock"
)

const (
	lockPoll = 25 * time.Millisecond
	// patience is how long an installation waits for a removal, which holds the
	// lock while it deletes.
	patience = time.Minute
)

// LockShared keeps packages from being removed until unlock is called. While
// a removal runs, it waits if ctx has a deadline, else it gives up at once;
// the error wraps [ErrBusy] and says who holds the lock.
//
// It also keeps those of the other stores that are seen.
func (s *Store) LockShared(ctx context.Context) (unlock func(), err error) {
	own, err := s.lock(ctx, false, "shared")
	if err != nil {
		return nil, err
	}
	others, err := s.lockHomes()
	if err != nil {
		own()
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return func() { others(); own() }, nil
}

// lockAlone is the lock of a removal: it keeps everybody else off the packages,
// and fails while somebody is at them.
func (s *Store) lockAlone(ctx context.Context, what string) (unlock func(), err error) {
	state, err := s.lock(ctx, true, what)
	if err != nil {
		return nil, err
	}
	home, err := s.lockHome()
	if err != nil {
		state()
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return func() { home(); state() }, nil
}

// lockPatiently is the own lock, shared, for work that must not be lost to a
// removal that happens to run.
func (s *Store) lockPatiently(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.lock(ctx, false, "shared")
}

func (s *Store) lockFile() string { return filepath.Join(s.StateDir, "store.lock") }

// lock takes the store's lock. The kernel frees it with the process; the text
// in the file is only for people.
func (s *Store) lock(ctx context.Context, exclusive bool, what string) (func(), error) {
	if err := atomicfile.MkdirAll(s.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	if _, err := os.Stat(filepath.Dir(s.record(""))); err == nil {
		_ = s.show() // imports of a version that kept them to itself
	}
	name := s.lockFile()
	l := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDONLY), flock.SetPermissions(0o600))
	try := l.TryRLock
	wait := l.TryRLockContext
	if exclusive {
		try, wait = l.TryLock, l.TryLockContext
	}
	var ok bool
	var err error
	if _, bounded := ctx.Deadline(); bounded {
		ok, err = wait(ctx, lockPoll)
		if errors.Is(err, context.DeadlineExceeded) {
			ok, err = false, nil
		}
	} else if err = ctx.Err(); err == nil {
		ok, err = try()
	}
	if err == nil && !ok {
		holder, readErr := os.ReadFile(name)
		if readErr != nil || len(holder) == 0 {
			holder = []byte("another process")
		}
		err = fmt.Errorf("%w: %s holds it", ErrBusy, strings.TrimSpace(string(holder)))
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("lock store %s: %w", name, err)
	}
	// A holder without the right to write is not named, no more.
	_ = os.WriteFile(name, fmt.Appendf(nil, "process %d (%s)\n", os.Getpid(), what), 0o600)
	return func() { _ = l.Close() }, nil
}
