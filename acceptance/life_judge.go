package acceptance

import (
	"bufio"
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
	f, err := os.Open(ledger)
	if err != nil {
		return ArmState{}, fmt.Errorf("judge the arm: %w", err)
	}
	defer f.Close()
	var a *arm
	_, err = eachLine(io.NewSectionReader(f, from, to-from), func(r *record) error {
		switch {
		case r.Kind == recordStart:
			s, err := decode[startRecord](r.line)
			if err == nil {
				a = newArm(p, faces, *s)
			}
			return err
		case r.Kind == recordResume, r.Kind == recordHost:
			return nil
		case a == nil:
			return errors.New("it comes before the arm's start")
		}
		return a.take(r)
	})
	if err == nil && a == nil {
		err = errors.New("it has no records")
	}
	if err != nil {
		return ArmState{}, fmt.Errorf("judge the arm: %w", err)
	}
	return a.classify(), nil
}

// eachLine hands the records of a ledger, or of a part of it, to take, without
// looking at their sums. It returns how many bytes the whole lines have.
func eachLine(r io.Reader, take func(*record) error) (int64, error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	var size int64
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return size, nil // what is left is not whole
		}
		if err != nil {
			return size, err
		}
		l, err := readLine(text[:len(text)-1])
		if err == nil {
			err = take(&record{line: l, size: int64(len(text))})
		}
		if err != nil {
			return size, fmt.Errorf("record %d: %w", l.Seq, err)
		}
		size += int64(len(text))
	}
}
