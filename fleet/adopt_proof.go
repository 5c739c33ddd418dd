package fleet

import (
	"fmt"
	"slices"

	"github.com/1bit-systems/pkg/systemd"
)

// prove checks, before anything is written, that our drop-in would hold and change nothing but what it must: the
// variables have the values that they have now, and every command gets the arguments that it gets now, less env.
func (s *session) prove(v *view, a *adoption) error {
	data, err := a.plan.next.Encode()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	after, err := v.with(data)
	if err != nil {
		return err
	}
	if key, win, ok := winner(after, v.path, a.plan.next); ok {
		return fmt.Errorf("%w: something would win over our drop-in: %s: give its file a name that sorts before %s, or take the line out", ErrRefused, describe(key, win), dropInName)
	}
	was, is := v.settings.Environment(), after.Environment()
	for key, set := range is {
		switch made := slices.Contains(a.plan.next.Environment, Assignment{key, set.Value}); {
		case was[key].Value != set.Value && !made, set.File == v.path && !made:
			return fmt.Errorf("%w: %s would change from %q to %q", ErrRefused, key, was[key].Value, set.Value)
		case made && set.Unsure != "":
			return fmt.Errorf("%w: whether %s reaches the service is not certain: %s", ErrRefused, key, set.Unsure)
		}
	}
	for key := range was {
		if _, ok := is[key]; !ok {
			return fmt.Errorf("%w: %s would be lost", ErrRefused, key)
		}
	}
	before := loadedEnvironment(v.loaded)
	a.proof = func(u *systemd.Unit) error {
		now := loadedEnvironment(u)
		for _, made := range a.plan.next.Environment {
			before[made.Key] = made.Value
		}
		for key, value := range before {
			if got, ok := now[key]; !ok || got != value {
				return fmt.Errorf("%w: the manager loaded %s=%s and not %s", ErrRefused, key, got, value)
			}
		}
		for key, value := range now {
			if _, ok := before[key]; !ok {
				return fmt.Errorf("%w: the manager loaded %s=%s, which was not set before", ErrRefused, key, value)
			}
		}
		return nil
	}
	return nil
}
