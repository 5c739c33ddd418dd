package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	bad := New(`(`) // is not compiled here
	word := New(`^[a-z]+$`)
	if !word().MatchString("word") || word().MatchString("two words") || word() != word() {
		t.Error("not the pattern, compiled once")
	}
	defer func() {
		if recover() == nil {
			t.Error("a pattern that is none did not panic at its use")
		}
	}()
	bad()
}
