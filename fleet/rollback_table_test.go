package fleet

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// Every transition of the table in the package's comment: what is armed after each act, and what is blocked then.
// An act is a word: +x switches to x and it serves, x only arms it, !x switches to x, which fails; <, <<, > are a
// rollback, one with --again and one with --undo; -x unblocks, 0 unswitches. What follows the colon is what is
// armed and, after a slash, blocked; "no" says that it is refused and "=" that it changes nothing.
func TestRollbackTransitions(t *testing.T) {
	for name, script := range map[string]string{
		"a first switch":                  "b:b <:a/b <:= >:b/ >:= <:a/b >:b +b:b <:a/b",
		"a first switch that failed":      "!b:a/b <:= <<:no >:b/ <:a/b",
		"nothing further than the first":  "+b:b <<:no <:a/b <<:no",
		"switches, back and forward":      "+b:b +c:c <:b/c >:c/ <:b/c <<:a/bc >:b/c >:c/",
		"one further at once":             "+b:b +c:c <<:a/c >:c/ <:b/c",
		"one further, served long before": "+b:b +c:c +d:d <<:b/d >:d/ <:c/d <<:b/cd >:c/d >:d/ >:=",
		"again after an undone one":       "+b:b +c:c +d:d <:c/d <<:b/cd >:c/d <<:b/cd <<:a/bcd >:b/cd >:c/d",
		"armed and never served":          "+b:b c:c d:d <:b/d >:d/ <<:a/d",
		"back to what served, and back":   "+b:b +c:c +b:b <:c/b <<:a/bc",
		"the other way round":             "+b:b +c:c b:b <<:a/b >:b/ <:c/b",
		"after a return":                  "+b:b !c:b/c >:c/ <:b/c",
		"after a return, further":         "+b:b +c:c !d:c/d <<:a/cd >:c/d",
		"after a return, back":            "+b:b +c:c !d:c/d <:b/cd <<:a/bcd >:b/cd >:c/d",
		"the return from a return":        "+b:b +c:c !d:c/d !e:c/de >:e/d <:c/de",
		"a return forgets what failed":    "+b:b +c:c !b:c/b <:a/bc",
		"unblocked":                       "+b:b c:c <:b/c -c:b/ >:c/ <:b/c -c:b/ c:c <:b/c",
		"unblocked, put away":             "b:b <:a/b -b:a/ >:b/ <:a/b",
		"unblocked beside another":        "!b:a/b +c:c/b <:a/bc -c:a/b c:c/b <:a/bc -b:a/c",
		"another's block and an undo":     "+b:b !c:b/c d:d/c <:b/cd -c:b/d >:d/ <:b/d",
		"a blocked one is no target":      "+b:b +c:c <:b/c d:d/c <:b/cd",
		"unswitched":                      "+b:b c:c <:b/c 0:a b:b <:a/b 0:a",
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnitFiles(t, "a", "b", "c", "d", "e")
			for i, step := range strings.Fields(script) {
				act, want, _ := strings.Cut(step, ":")
				before := u.snapshot()
				err := u.do(act)
				where := fmt.Sprintf("%s, step %d (%s)", name, i+1, step)
				switch {
				case want == "no":
					if !errors.Is(err, ErrRefused) {
						t.Errorf("%s: %v, want a refusal", where, err)
					}
				case err != nil:
					t.Fatalf("%s: %v", where, err)
				}
				if want == "no" || want == "=" {
					if !maps.Equal(u.snapshot(), before) {
						t.Errorf("%s changed the files", where)
					}
					continue
				}
				armed, blocks, said := strings.Cut(want, "/")
				if got := u.armed(); got != armed {
					t.Fatalf("%s: %s is armed", where, got)
				}
				if got := strings.Join(u.blocked(), ""); said && got != blocks {
					t.Errorf("%s: blocked %q", where, got)
				}
			}
		})
	}
}

// do is one word of a script.
func (u *unitFiles) do(act string) error {
	u.Helper()
	var err error
	switch {
	case act == "<":
		_, err = u.rollback(RollbackOptions{})
	case act == "<<":
		_, err = u.rollback(RollbackOptions{Again: true})
	case act == ">":
		_, err = u.rollback(RollbackOptions{Undo: true})
	case act == "0":
		if err = u.unswitch(); err == nil && len(u.snapshot()) > 0 {
			u.Errorf("unswitch left %v", u.snapshot())
		}
	case act[0] == '-':
		err = u.unblock(act[1:])
	case act[0] == '+', act[0] == '!':
		if err = u.switchTo(act[1:]); err == nil {
			u.restart(act[0] == '+')
		}
	default:
		err = u.switchTo(act)
	}
	return err
}
