package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/1bit-systems/pkg/systemd"
)

// prove checks, before anything is written, that our drop-in would hold and change nothing but what it must: the
// variables have the values that they have now, and every command gets the arguments that it gets now, less env.
func (s *session) prove(ctx context.Context, v *view, a *adoption) error {
	data, err := a.plan.next.Encode()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	after, err := v.with(data)
	if err != nil {
		return err
	}
	if key, win, ok := winner(after, v.path, a.plan.next); ok {
		return fmt.Errorf("%w: something would win over our drop-in: %s: %s", ErrRefused, describe(key, win), giveWay(win))
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
	if err := s.sameCommands(ctx, v.settings, after); err != nil {
		return err
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

// sameCommands checks that every command gets the arguments that it got before, less env. What is not certain about
// one is so before and after: the same words stand there.
func (s *session) sameCommands(ctx context.Context, before, after *systemd.Settings) error {
	inherited, err := s.m.Environment(ctx)
	if err != nil {
		return err
	}
	was, is := before.Start(), after.Start()
	if len(was) != len(is) {
		return fmt.Errorf("%w: it would start %d commands in place of %d", ErrRefused, len(is), len(was))
	}
	for i := range was {
		old, _ := before.Argv(was[i], inherited)
		argv, _ := after.Argv(is[i], inherited)
		path := is[i].Path
		if path == envProgram && was[i].Path != envProgram && len(argv) > 1 && argv[0] == envProgram {
			argv = argv[1:]
			path = filepath.Clean(argv[0])
		}
		if !slices.Equal(s.place.pinnedWords(old), s.place.pinnedWords(argv)) || s.place.pinned(path) != s.place.pinned(was[i].Path) || was[i].Prefix != is[i].Prefix {
			return fmt.Errorf("%w: %s:%d would start %s%q in place of %s%q", ErrRefused, was[i].File, was[i].Line, is[i].Prefix, argv, was[i].Prefix, old)
		}
	}
	return nil
}
