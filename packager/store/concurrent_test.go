package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// TestConcurrently has commands of every kind meet over one package. Each of
// them either does its work or says that another is at it; none sees half a
// package, and nothing is left.
func TestConcurrently(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	file := sampleArchive(t, "a", "")
	expect := func(what string, err error, allowed ...error) {
		for _, a := range allowed {
			if errors.Is(err, a) {
				return
			}
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	acts := map[string]func(){
		"install": func() {
			_, _, err := s.Install(ctx, file, nil)
			expect("install", err)
		},
		"remove": func() {
			p, err := s.Find(ctx, "a")
			expect("find", err, ErrNotInstalled)
			if err == nil {
				expect("remove", s.Remove(ctx, p, nil), ErrNotInstalled, ErrBusy)
			}
		},
		"look": func() {
			list, err := s.List(ctx)
			expect("list", err)
			for _, p := range list {
				if p.State == StateBroken {
					t.Errorf("list shows half a package: %s", p.Detail)
				}
				v, err := s.Verify(ctx, p, nil)
				expect("verify", err, ErrNotInstalled)
				if err != nil {
					continue
				}
				for _, q := range v.Problems {
					// The folder's mode is the last thing that an installation sets and the first that a
					// removal changes.
					if q.Path != "." {
						t.Errorf("verify finds %v", q)
					}
				}
			}
		},
	}
	var all sync.WaitGroup
	for _, act := range acts {
		for range 2 {
			all.Go(func() {
				for range 25 {
					act()
				}
			})
		}
	}
	all.Wait()
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) != 0 {
		t.Errorf("left in staging: %v, %v", left, err)
	}
}
