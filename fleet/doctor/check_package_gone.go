package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// packageGone looks for processes that run from files which are no longer there.
func packageGone() Check {
	c := ofStatus("package-gone",
		"The process runs on from files that are gone until it opens one that it has not opened yet, and what it starts anew comes from somewhere else or not at all.",
		"Install the package again or switch to one that is installed, then: 1bit pkg restart UNIT")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		return errors.Join(told(ctx, l, add), unreadable(l))
	}
	return c
}

// unreadable says which services have processes that this account may not look into.
func unreadable(l *look) error {
	services, _ := l.services()
	var names []string
	for _, s := range services {
		if s.Live != nil && s.Live.Unreadable {
			names = append(names, s.where)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the processes of %s belong to another account: run this as root", strings.Join(names, ", "))
}
