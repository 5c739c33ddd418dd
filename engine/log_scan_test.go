package engine

import (
	"strconv"
	"testing"
)

func TestCutFloat(t *testing.T) {
	for _, s := range []string{"0", "4000.00", "1624.04", "0.252", "8192.000", "137.", "27103.62", "123456789012345", "12345678901234567890.5", "0.000000000000000000001"} {
		want, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got, rest, ok := cutFloat(s + " ms"); got != want || rest != " ms" || !ok {
			t.Errorf("%s: %v, %q, %v", s, got, rest, ok)
		}
	}
	for _, s := range []string{"", ".5", "-1", "nan", "inf"} {
		if v, rest, ok := cutFloat(s); ok || v != 0 || rest != s {
			t.Errorf("%q: %v, %q, %v", s, v, rest, ok)
		}
	}
}

func TestCutSigned(t *testing.T) {
	tests := []struct {
		s, rest string
		n       int
		ok      bool
	}{
		{"-1 |", " |", -1, true}, {"34161568263", "", 34161568263, true}, {"-", "", 0, false}, {"--1", "-1", 0, false}, {"", "", 0, false},
		{"99999999999999999999x", "x", 0, true}, // it fits into no integer
		{"9223372036854775807", "", 9223372036854775807, true},
	}
	for _, tt := range tests {
		if n, rest, ok := cutSigned(tt.s); n != tt.n || rest != tt.rest || ok != tt.ok {
			t.Errorf("%q: %d, %q, %v", tt.s, n, rest, ok)
		}
	}
}
