package doctor

import (
	"context"
	"errors"
)

// nanContinue looks for the guard against NaN being told to go on.
func nanContinue() Check {
	c := ofStatus("nan-continue",
		"With GGML_HRX_NAN_CONTINUE the guard only logs a NaN and the server answers on with wrong tokens: that is for soaks, where nobody uses the answers.",
		"Take the variable out of the unit, reload, and restart the service with: 1bit pkg restart UNIT")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		return errors.Join(told(ctx, l, add), unreadable(l)) // what runs may have it all the same
	}
	return c
}
