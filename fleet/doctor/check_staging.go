package doctor

import (
	"context"
	"errors"
)

// staging looks for what cut off installs have left and no command of this account can sweep.
func staging() Check {
	return Check{
		Name:   "staging",
		Reason: "What a cut off install or removal of another account has left takes room for ever: commands sweep only what they may.",
		Remedy: "Remove it as the account that it belongs to: sudo rm -rf FOLDER",
		find: func(_ context.Context, l *look, add adder) error {
			if len(l.Hosts) == 0 {
				return nil
			}
			_, err := l.packages() // reading them sweeps
			left, lerr := l.Hosts[0].Store.Leftovers(l.Now)
			for _, path := range left {
				add(path, "sudo rm -rf "+path, "it was left by a command that was cut off%s", ownedBy(path))
			}
			return errors.Join(err, lerr)
		},
	}
}
