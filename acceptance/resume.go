package acceptance

import (
	"context"
	"errors"
)

// Resume goes on with a run whose runner has died or was interrupted; RunOptions.Plan is not needed, it is the one of the
// evidence folder. What the run had started and left behind is ended. Package, models and plan must be those of the
// run, by their digests; an error that wraps ErrEvidence says what is not. It wraps ErrRunning if the run goes on.
func Resume(ctx context.Context, o RunOptions) (*Verdict, error) {
	return nil, errors.ErrUnsupported
}
