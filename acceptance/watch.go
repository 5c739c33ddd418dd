package acceptance

import (
	"context"
	"errors"
	"time"
)

// Status is what the ledger of a run tells while it grows.
type Status struct {
	Progress
	Running bool     // a runner holds the evidence folder
	Closed  bool     // the run has ended
	Verdict *Verdict // of what is there so far
}

// Watch follows a run by its ledger alone: it calls f every so often, until the run has ended or its runner is gone,
// and a last time then.
func Watch(ctx context.Context, dir string, every time.Duration, f func(Status)) error {
	return errors.ErrUnsupported
}
