package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// of gives the plan as it is for one life: what its arm changes is in its place.
func (p *Plan) of(l PlannedLife) *Plan {
	own := *p
	own.Server, own.Load, own.Neighbour, own.Gates = l.Server, l.Load, l.Neighbour, l.Gates
	return &own
}

// judgeLife judges the last life of a ledger, whose records begin at an offset,
// as the verdict will.
func judgeLife(p *Plan, ledger string, from int64) (ArmState, error) {
	raw, err := readFrom(ledger, from)
	if err != nil {
		return ArmState{}, fmt.Errorf("judge the arm: %w", err)
	}
	var a *arm
	for text := range bytes.Lines(raw) {
		l, err := readLine(bytes.TrimSuffix(text, []byte{'\n'}))
		if err != nil {
			return ArmState{}, fmt.Errorf("judge the arm: %w", err)
		}
		if l.Kind == recordStart {
			s, err := decode[startRecord](l)
			if err != nil {
				return ArmState{}, fmt.Errorf("judge the arm: %w", err)
			}
			a = &arm{plan: p, start: *s}
			continue
		}
		if a == nil {
			return ArmState{}, fmt.Errorf("judge the arm: record %d: %s before its start", l.Seq, l.Kind)
		}
		if err := a.take(l); err != nil {
			return ArmState{}, fmt.Errorf("judge the arm: %w", err)
		}
	}
	if a == nil {
		return ArmState{}, fmt.Errorf("judge the arm: it has no records")
	}
	return a.classify(), nil
}

// readFrom reads a file from an offset on.
func readFrom(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, offset, 1<<62))
}
