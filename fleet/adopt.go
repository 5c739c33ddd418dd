package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Adoption is what adopt did, or would do: the outcome of an act that moves no package, the difference that it makes
// to our drop-in, and the lines of the owner's own files that stay as they are and no longer decide.
type Adoption struct {
	Outcome
	Diff      string  `json:"diff"` // unified, of our drop-in
	TakenOver []Taken `json:"taken_over"`
}

// Taken is a line that was taken over.
type Taken struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"` // as systemd reads it, continued lines in one
}

// MarshalJSON writes the outcome's keys and the adoption's own into one object.
func (a Adoption) MarshalJSON() ([]byte, error) {
	outcome, err := json.Marshal(a.Outcome)
	if err != nil {
		return nil, err
	}
	if a.TakenOver == nil {
		a.TakenOver = []Taken{}
	}
	own, err := json.Marshal(struct {
		Diff      string  `json:"diff"`
		TakenOver []Taken `json:"taken_over"`
	}{a.Diff, a.TakenOver})
	if err != nil {
		return nil, err
	}
	return append(append(outcome[:len(outcome)-1:len(outcome)-1], ','), own[1:]...), nil
}

// Adopt takes over a binding that was written by hand: variables of the unit file or of drop-ins, and an ExecStart=
// that itself names a package. Our drop-in then says the same, so that a switch can move all of it together; no file
// of the owner's is touched, and nothing is armed that was not. The error wraps [ErrRefused] where something cannot
// move, would win over us, or names no installed package; then nothing has changed.
func (h *Host) Adopt(ctx context.Context, unit string, dry bool) (*Adoption, error) {
	act, result := "adopt "+unit, &Adoption{}
	out, err := h.perform(ctx, unit, act, dry, func(s *session) ([]string, error) {
		v, a, err := s.adoption(ctx)
		if err != nil {
			return nil, fmt.Errorf("adopt %s: %w", s.unit, err)
		}
		if a.plan.next == nil {
			return nil, errNothingToAsk
		}
		return append(a.findings(v), a.plan.notes...), nil
	}, func(s *session, out *Outcome) error {
		if err := s.adopt(ctx, dry, out, result); err != nil {
			return fmt.Errorf("adopt %s: %w", s.unit, err)
		}
		return nil
	})
	if out == nil {
		return nil, err
	}
	result.Outcome = *out
	return result, err
}

func (s *session) adopt(ctx context.Context, dry bool, out *Outcome, result *Adoption) error {
	v, a, err := s.adoption(ctx)
	if err != nil {
		return err
	}
	out.From, out.To, out.DryRun = a.plan.from.Name, a.plan.from.Name, dry
	out.Notes = append(out.Notes, a.plan.notes...)
	if a.plan.next == nil {
		return nil
	}
	data, err := a.plan.next.Encode()
	if err != nil {
		return err
	}
	result.Diff = created(v.path, string(data))
	for _, l := range a.taken {
		result.TakenOver = append(result.TakenOver, Taken{l.file, l.Number, l.text()})
	}
	if dry {
		return nil
	}
	s.proof = a.proof
	if err := s.write(ctx, v, &a.plan, out); err != nil {
		return err
	}
	s.h.log().Info("adopted", "unit", s.unit, "package", out.To)
	return nil
}

// findings says what an adoption does, for the question to the owner.
func (a *adoption) findings(v *view) []string {
	return []string{fmt.Sprintf("writes %s with the values that hold now, from %d lines of the unit's own files; what is armed stays %s",
		v.path, len(a.taken), a.plan.from.Name)}
}

// created is the unified difference of a file that is new.
func created(path, text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return fmt.Sprintf("--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n+%s\n", path, len(lines), strings.Join(lines, "\n+"))
}
