package doctor

import (
	"context"
	"time"
)

// clock looks whether the clock is set.
func clock() Check {
	return Check{
		Name:   "clock",
		Reason: "With a clock that is behind, holds do not end, records are out of order and signatures are not valid yet.",
		Remedy: "Set the clock: sudo timedatectl set-ntp true",
		find: func(_ context.Context, l *look, add adder) error {
			packages, err := l.packages()
			for _, p := range packages {
				if made := time.Unix(p.Manifest.SourceDateEpoch, 0); made.After(l.Now.Add(24 * time.Hour)) {
					add(p.Name, "", "it was made on %s, and this machine's clock says %s", made.UTC().Format(time.DateOnly), l.Now.UTC().Format(time.DateOnly))
				}
			}
			return err
		},
	}
}
