package doctor

import (
	"context"
	"errors"
)

// mixedPackage looks for services of which parts run from different packages.
func mixedPackage() Check {
	c := ofStatus("mixed-package",
		"A front end and a server of different packages, or a program of one with libraries of another, were never tested together.",
		"Restart the service: 1bit pkg restart UNIT; where its variables name several packages: 1bit pkg switch UNIT ID")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		return errors.Join(told(ctx, l, add), unreadable(l))
	}
	return c
}
