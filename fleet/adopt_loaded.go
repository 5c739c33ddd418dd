package fleet

import (
	"fmt"
	"slices"

	"github.com/1bit-systems/pkg/systemd"
)

// loadedStart compares the commands that the manager has loaded with those that the files amount to, where our
// drop-in starts any. The error wraps ErrRefused.
func loadedStart(u *systemd.Unit, s *systemd.Settings, d *DropIn) error {
	if len(d.Start) == 0 {
		return nil
	}
	want := s.Start()
	same := len(want) == len(u.ExecStart)
	for i := 0; same && i < len(want); i++ {
		got := u.ExecStart[i]
		same = want[i].Unsure != "" || slices.Contains(want[i].Candidates(), got.Path) && slices.Equal(want[i].Argv, got.Argv)
	}
	if !same {
		return fmt.Errorf("%w: the manager loaded other commands than our drop-in has: %v", ErrRefused, u.ExecStart)
	}
	return nil
}
