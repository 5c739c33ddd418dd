package cmd

import "testing"

func TestUsedByText(t *testing.T) {
	for _, tt := range []struct {
		uses []string
		want string
	}{
		{nil, "-"}, {[]string{"a"}, "a"}, {[]string{"a", "b", "c"}, "a, b, c"}, {[]string{"a", "b", "c", "d"}, "a, b and 2 more"},
	} {
		if got := usedByText(tt.uses); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.uses, got, tt.want)
		}
	}
}
