package acceptance

import (
	"bytes"
	"errors"
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

// judgeLife judges one life of a ledger, whose records lie between two offsets,
// as the verdict will.
func judgeLife(p *Plan, faces *faceTable, ledger string, from, to int64) (ArmState, error) {
	raw, err := readBetween(ledger, from, to)
	if err != nil {
		return ArmState{}, fmt.Errorf("judge the arm: %w", err)
	}
	var a *arm
	for text := range bytes.Lines(raw) {
		l, err := readLine(bytes.TrimSuffix(text, []byte{'\n'}))
		switch {
		case err != nil:
		case l.Kind == recordStart:
			var s *startRecord
			if s, err = decode[startRecord](l); err == nil {
				a = newArm(p, faces, *s)
			}
		case l.Kind == recordResume, l.Kind == recordHost:
		case a == nil:
			err = errors.New("a record before its start")
		default:
			err = a.take(&record{line: l})
		}
		if err != nil {
			return ArmState{}, fmt.Errorf("judge the arm: record %d: %w", l.Seq, err)
		}
	}
	if a == nil {
		return ArmState{}, errors.New("judge the arm: it has no records")
	}
	return a.classify(), nil
}

func readBetween(path string, from, to int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, from, to-from))
}
