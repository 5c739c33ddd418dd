package fleet

import (
	"fmt"
	"strings"
)

// ownFolder refuses a unit whose drop-in folder others read too: foo-.service.d is that of every foo-….service, so a
// file of ours in it would move all of them.
func ownFolder(unit string) error {
	prefix, _, _ := strings.Cut(strings.TrimSuffix(unit, ".service"), "@")
	if !strings.HasSuffix(prefix, "-") {
		return nil
	}
	return fmt.Errorf("%w: systemd reads %s.d for every service whose name begins with %s: give the unit a name that does not end in \"-\"",
		ErrRefused, unit, prefix)
}
