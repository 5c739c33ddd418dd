package acceptance

import (
	"fmt"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 5.1e-7) {
		t.Errorf("%s = %.6f, want %.6f", what, got, want)
	}
}

// Exact values, computed independently.
func TestBounds(t *testing.T) {
	tests := []struct{ k, n, upper95, lower2, upper2, upper99 float64 }{
		{0, 60, 0.048703, 0, 0.059629, 0.073881},
		{0, 66, 0.044375, 0, 0.054359, 0.067397},
		{0, 300, 0.009936, 0, 0.012221, 0.015233},
		{0, 1497, 0.001999, 0, 0.002461, 0.003072},
		{0, 1500, 0.001995, 0, 0.002456, 0.003065},
		{0, 3960, 0.000756, 0, 0.000931, 0.001162},
		{1, 25, 0.176121, 0.001012, 0.203517, 0.237486},
		{2, 37, 0.160542, 0.006615, 0.181949, 0.208389},
		{6, 13, 0.712951, 0.192232, 0.748655, 0.787123},
		{5, 5, 1, 0.478176, 1, 1},
	}
	for _, tt := range tests {
		name := fmt.Sprintf("%v/%v", tt.k, tt.n)
		near(t, name+" upper 95", upperBound(tt.k, tt.n, 0.05), tt.upper95)
		near(t, name+" two-sided lower", lowerBound(tt.k, tt.n, 0.025), tt.lower2)
		near(t, name+" two-sided upper", upperBound(tt.k, tt.n, 0.025), tt.upper2)
		near(t, name+" upper 99", upperBound(tt.k, tt.n, 0.01), tt.upper99)
	}
	near(t, "a face seen on a quarter", upperBound(0, 375, 0.05), 0.007957)
	near(t, "never-used slots of 60 lives", upperBound(0, 240, 0.05), 0.012405)
	near(t, "one of four length bins, jointly", upperBound(0, 375, 0.05/4), 0.011617)
	near(t, "no trials", upperBound(0, 0, 0.05), 1)
	near(t, "one life", upperBound(0, 1, 0.05), 0.95)
}

func TestRequiredTrials(t *testing.T) {
	tests := []struct {
		p, alpha float64
		want     []int // with 0, 1, 2, 3 faults
	}{
		{1. / 100, 0.05, []int{299, 473, 628, 773}},
		{1. / 200, 0.05, []int{598, 947, 1258, 1549}},
		{1. / 500, 0.05, []int{1497, 2371, 3146, 3875}},
		{1. / 1000, 0.05, []int{2995, 4742, 6294, 7752}},
		{1. / 500, 0.10, []int{1151}},
		{1. / 500, 0.01, []int{2301}},
		{0.05, 0.05, []int{59}},
	}
	for _, tt := range tests {
		for k, want := range tt.want {
			n := requiredTrials(k, tt.p, tt.alpha)
			if n != want {
				t.Errorf("p %v, alpha %v, %d faults: n = %d, want %d", tt.p, tt.alpha, k, n, want)
			}
			if upperBound(float64(k), float64(n), tt.alpha) > tt.p || upperBound(float64(k), float64(n-1), tt.alpha) <= tt.p {
				t.Errorf("p %v, %d faults: n = %d is not where the bound falls below", tt.p, k, n)
			}
		}
	}
}

func TestEffective(t *testing.T) {
	near(t, "n_eff 25 a life, 0.1", effective(1500, 25, 0.1)/1000, 0.441176)
	near(t, "bound 25 a life, 0.1", upperBound(0, effective(1500, 25, 0.1), 0.05), 0.006767)
	near(t, "bound 25 a life, 0.5", upperBound(0, effective(1500, 25, 0.5), 0.05), 0.025629)
	near(t, "bound 66 a life, 0.1", upperBound(0, effective(3960, 66, 0.1), 0.05), 0.005658)
	near(t, "bound 66 a life, 0.5", upperBound(0, effective(3960, 66, 0.5), 0.05), 0.025024)
	near(t, "bound 66 a life, 1", upperBound(0, effective(3960, 66, 1), 0.05), 0.048703)
	if effective(7, 1, 0.5) != 7 || effective(7, 0, 0.5) != 7 {
		t.Error("without clusters nothing is reduced")
	}
}

// A bound never falls when a fault is added or a trial taken away.
func TestBoundsAreMonotone(t *testing.T) {
	for n := 1.0; n < 200; n += 7 {
		last := -1.0
		for k := 0.0; k <= n; k++ {
			u := upperBound(k, n, 0.05)
			if !(u >= last) || !(u <= 1) {
				t.Fatalf("%v/%v: %v after %v", k, n, u, last)
			}
			if fewer := upperBound(k, n-1, 0.05); !(fewer >= u) {
				t.Fatalf("%v/%v: %v, but %v with one trial less", k, n, u, fewer)
			}
			last = u
		}
	}
}
