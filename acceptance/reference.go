package acceptance

import (
	"context"
	"fmt"
	"path/filepath"
)

// resolvedReference is the run whose quiet answers the sentinels must equal.
type resolvedReference struct {
	Ledger  identity `json:"ledger"`
	Head    string   `json:"head"` // sum of its last record
	Verdict string   `json:"verdict"`
	Package string   `json:"package_digest"` // that gave those answers
}

// referenceDir is the evidence folder of the plan's reference run.
func (p *Plan) referenceDir() string {
	if filepath.IsAbs(p.Sentinels.Reference) {
		return p.Sentinels.Reference
	}
	return filepath.Join(filepath.Dir(p.path), p.Sentinels.Reference)
}

// resolveReference names the reference run by the bytes of its ledger. Answers
// of a run that failed, that goes on, or whose ledger is damaged are no
// reference: the error wraps ErrPlan.
func (p *Plan) resolveReference(ctx context.Context, known *sums) (*resolvedReference, error) {
	const key = "sentinels.reference"
	dir, err := filepath.Abs(p.referenceDir())
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", key, err)
	}
	r := &resolvedReference{}
	if r.Ledger, err = known.identify(ctx, key, filepath.Join(dir, LedgerName)); err != nil {
		return nil, err
	}
	v, err := JudgeDir(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrPlan, key, err)
	case v.Verdict == Fail:
		return nil, fmt.Errorf("%w: %s: the run in %s failed (%s): its answers prove nothing, take another run", ErrPlan, key, dir, v.Reason)
	case !v.Ledger.Closed: // which a damaged ledger is not either
		return nil, fmt.Errorf("%w: %s: the run in %s is not whole: %s", ErrPlan, key, dir, v.Reason)
	}
	r.Head, r.Verdict, r.Package = v.Ledger.Head, v.Verdict, v.PackageDigest
	return r, nil
}
