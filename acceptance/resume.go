package acceptance

import (
	"context"
	"errors"
)

// Resume goes on with a run whose runner has died or was interrupted. RunOptions.Plan is not needed: it is the one of
// the evidence folder. What the run had started and left behind is ended. Packages, models and plan must be those of
// the run, by their digests; an error that wraps ErrEvidence says what is not. It wraps ErrRunning if the run goes on.
func Resume(ctx context.Context, o RunOptions) (*Verdict, error) {
	return nil, errors.ErrUnsupported
}

// size tells where the next record will begin, in bytes.
func (l *ledger) size() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := l.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// leave syncs and closes the file without a closing record: the run can go on.
func (l *ledger) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(l.flush(), l.f.Close())
}
