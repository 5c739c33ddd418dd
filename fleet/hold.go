package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// holdName is the file in a unit's drop-in folder that holds the service where it is. It is a file of its own, so
// that it outlives every exchange of a rollback and works for a unit that was never switched; systemd reads only
// names that end in .conf.
const holdName = "zz-1bit.hold"

// A hold keeps a service on the package that it is armed with: switch, adopt and a restart that would change what
// runs are refused. A rollback ignores it.
type hold struct {
	Reason string
	Until  time.Time // zero: until somebody lifts it
	By     string
	At     time.Time
}

var holdKeys = [...]string{"reason", "until", "by", "at"}

// expired tells whether the hold has no force any more.
func (o *hold) expired(now time.Time) bool { return !o.Until.IsZero() && !now.Before(o.Until) }

// String is what a refusal says of the hold.
func (o *hold) String() string {
	text := fmt.Sprintf("held by %s since %s: %s", or(o.By, "somebody"), o.At.Format(time.DateOnly), o.Reason)
	if !o.Until.IsZero() {
		text += ", until " + o.Until.Format(time.RFC3339)
	}
	return text
}

func (o *hold) encode() ([]byte, error) {
	fields := struct {
		Reason string `json:"reason"`
		Until  string `json:"until,omitempty"`
		By     string `json:"by"`
		At     string `json:"at"`
	}{o.Reason, "", o.By, o.At.UTC().Format(time.RFC3339)}
	if !o.Until.IsZero() {
		fields.Until = o.Until.UTC().Format(time.RFC3339)
	}
	data, err := json.MarshalIndent(fields, "", "  ")
	return append(data, '\n'), err
}

// decodeHold reads the bytes of a hold file, strictly: what cannot be read for certain may hold the service.
func decodeHold(data []byte) (*hold, error) {
	fields, err := parseFields(data, holdKeys[:]...)
	if err != nil {
		return nil, err
	}
	o := &hold{Reason: fields["reason"], By: fields["by"]}
	if strings.TrimSpace(o.Reason) == "" {
		return nil, errors.New("it gives no reason")
	}
	if o.At, err = time.Parse(time.RFC3339, fields["at"]); err != nil {
		return nil, fmt.Errorf("%q is no time", fields["at"])
	}
	if until, ok := fields["until"]; ok {
		if o.Until, err = time.Parse(time.RFC3339, until); err != nil {
			return nil, fmt.Errorf("%q is no time", until)
		}
		if o.Until.IsZero() {
			return nil, fmt.Errorf("%q is no time that a hold can end", until)
		}
	}
	return o, nil
}

func (h *Host) holdPath(unit string) string { return filepath.Join(h.dropInDir(unit), holdName) }

// hold reads the hold of a unit, nil where there is none, also one that has expired. The error says how to lift
// what cannot be read.
func (h *Host) hold(unit string) (*hold, error) {
	data, err := readFields(h.holdPath(unit))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var o *hold
	if err == nil {
		o, err = decodeHold(data)
	}
	if err != nil {
		return nil, fmt.Errorf("the hold %s cannot be read, so the service counts as held: %w; lift it with: 1bit pkg unhold %s",
			h.holdPath(unit), err, unit)
	}
	return o, nil
}

// unheld refuses an act that a hold forbids.
func (h *Host) unheld(unit string) error {
	o, err := h.hold(unit)
	switch {
	case errors.Is(err, ErrRefused):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case o != nil && !o.expired(h.Now()):
		return fmt.Errorf("%w: %s is %s (lift it with: 1bit pkg unhold %s)", ErrRefused, unit, o, unit)
	}
	return nil
}

// describeHold adds what status says of a hold.
func (h *Host) describeHold(unit string, s *Service) {
	o, err := h.hold(unit)
	switch {
	case err != nil:
		s.find("hold", "", "%v", err)
		s.Held = &Hold{Reason: "its hold cannot be read"}
	case o == nil:
	case o.expired(h.Now()):
		s.find("hold", fmt.Sprintf("1bit pkg unhold %s removes it", unit),
			"its hold expired at %s and has no force (%s)", o.Until.Format(time.RFC3339), o.Reason)
	default:
		s.Held = &Hold{Reason: o.Reason, By: o.By, At: o.At}
		if !o.Until.IsZero() {
			s.Held.Until = &o.Until
		}
	}
}

// Hold keeps a service where it is, for a reason, until a time (zero: until [Host.Unhold]). The owner is asked only
// where a hold is there already, since the new one may be shorter. The error wraps [ErrRefused] where the reason
// is empty or the time is past.
func (h *Host) Hold(ctx context.Context, unit, reason string, until time.Time) (*Outcome, error) {
	act := "hold " + unit
	reason = strings.TrimSpace(reason)
	switch {
	case reason == "":
		return nil, fmt.Errorf("%s: %w: a hold needs a reason", act, ErrRefused)
	case len(reason) > maxReason:
		return nil, fmt.Errorf("%s: %w: the reason has more than %d bytes", act, ErrRefused, maxReason)
	case !until.IsZero() && !h.Now().Before(until):
		return nil, fmt.Errorf("%s: %w: %s is past", act, ErrRefused, until.Format(time.RFC3339))
	}
	return h.perform(ctx, unit, act, false, func(s *session) ([]string, error) {
		if err := ownFolder(s.unit); err != nil {
			return nil, fmt.Errorf("%s: %w", act, err)
		}
		return s.holdFindings("replaces")
	}, func(s *session, out *Outcome) error {
		if err := ownFolder(s.unit); err != nil {
			return fmt.Errorf("%s: %w", act, err)
		}
		o := &hold{Reason: reason, Until: until.UTC().Truncate(time.Second), By: h.User, At: h.Now().UTC().Truncate(time.Second)}
		data, err := o.encode()
		if err == nil {
			err = atomicfile.Write(h.holdPath(s.unit), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", act, unwritable(h.dropInDir(s.unit), err))
		}
		out.Changed = true
		h.log().Info("held", "unit", s.unit, "reason", reason, "until", until)
		return nil
	})
}

// maxReason bounds a reason in bytes.
const maxReason = 4096

// holdFindings says what a change of the hold does to one that is there; without one there is nothing to ask.
func (s *session) holdFindings(what string) ([]string, error) {
	o, err := s.h.hold(s.unit)
	switch {
	case errors.Is(err, ErrRefused):
		return nil, err
	case err != nil:
		return []string{what + " a hold that cannot be read"}, nil
	case o == nil:
		return nil, errNothingToAsk
	}
	return []string{fmt.Sprintf("%s what there is: %s", what, o)}, nil
}

// Unhold lifts the hold of a service, also one that cannot be read. The error wraps [fs.ErrNotExist] where there is
// none.
func (h *Host) Unhold(ctx context.Context, unit string) (*Outcome, error) {
	act := "lift the hold of " + unit
	none := func(unit string) error { return fmt.Errorf("%s: %w", act, nothing(unit+" is not held")) }
	return h.perform(ctx, unit, act, false, func(s *session) ([]string, error) {
		found, err := s.holdFindings("lifts")
		if errors.Is(err, errNothingToAsk) {
			return nil, none(s.unit)
		}
		return found, err
	}, func(s *session, out *Outcome) error {
		err := h.removeHold(s.unit)
		if errors.Is(err, fs.ErrNotExist) {
			return none(s.unit)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", act, unwritable(h.dropInDir(s.unit), err))
		}
		out.Changed = true
		if os.Remove(h.dropInDir(s.unit)) == nil { // nothing else was in it
			_ = atomicfile.SyncDir(h.UnitDir)
		}
		h.log().Info("hold lifted", "unit", s.unit)
		return nil
	})
}

// removeHold removes the hold file, whatever is in it.
func (h *Host) removeHold(unit string) error {
	info, err := os.Lstat(h.holdPath(unit))
	if err == nil && !info.Mode().IsRegular() {
		return notAFile(h.holdPath(unit), info.Mode())
	}
	if err != nil {
		return err
	}
	return atomicfile.Remove(h.holdPath(unit))
}
