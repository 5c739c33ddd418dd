package stats

import (
	"fmt"
	"math"
	"testing"
	"testing/quick"
)

// near compares to six digits after the point.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 5.1e-7) {
		t.Errorf("%s = %.7f, want %.6f", what, got, want)
	}
}

// Exact values, computed independently.
func TestClopperPearson(t *testing.T) {
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
		lower, upper := TwoSided(tt.k, tt.n, 0.05)
		near(t, name+" upper 95", UpperBound(tt.k, tt.n, 0.05), tt.upper95)
		near(t, name+" two-sided lower", lower, tt.lower2)
		near(t, name+" two-sided upper", upper, tt.upper2)
		near(t, name+" upper 99", UpperBound(tt.k, tt.n, 0.01), tt.upper99)
	}
	near(t, "a face seen on a quarter", UpperBound(0, 375, 0.05), 0.007957)
	near(t, "never-used slots of 60 lives", UpperBound(0, 240, 0.05), 0.012405)
	near(t, "one of four length bins, jointly", UpperBound(0, 375, 0.05/4), 0.011617)
	near(t, "arm and request jointly: arm", UpperBound(0, 60, 0.025), 0.059629)
	near(t, "arm and request jointly: request", UpperBound(0, 1500, 0.025), 0.002456)
	near(t, "one life", UpperBound(0, 1, 0.05), 0.95)
}

// What is no evidence claims nothing.
func TestBoundsOfNonsense(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, in := range [][3]float64{
		{0, 0, 0.05}, {0, -1, 0.05}, {nan, 60, 0.05}, {0, nan, 0.05}, {0, 60, nan}, {0, 60, 0}, {0, 60, 1}, {0, inf, 0.05},
		{61, 60, 0.05}, {60, 60, 0.05},
	} {
		if u := UpperBound(in[0], in[1], in[2]); u != 1 {
			t.Errorf("UpperBound(%v) = %v", in, u)
		}
		if u := Anytime(in[0], in[1], in[2]); u != 1 {
			t.Errorf("Anytime(%v) = %v", in, u)
		}
		if u := Credible(in[0], in[1], 1, 1, in[2]); u < 0.05 || math.IsNaN(u) {
			t.Errorf("Credible(%v) = %v", in, u)
		}
	}
	for _, in := range [][3]float64{{0, 0, 0.05}, {nan, 60, 0.05}, {1, nan, 0.05}, {1, 60, nan}, {0, 60, 0.05}, {1, inf, 0.05}} {
		if l := LowerBound(in[0], in[1], in[2]); l != 0 {
			t.Errorf("LowerBound(%v) = %v", in, l)
		}
	}
}

func TestRuleOfThree(t *testing.T) {
	near(t, "60", RuleOfThree(60), 0.05)
	near(t, "300", RuleOfThree(300), 0.01)
	near(t, "1500", RuleOfThree(1500), 0.002)
	for n := 1.0; n < 1e6; n *= 3 {
		if !(RuleOfThree(n) > UpperBound(0, n, 0.05)) {
			t.Errorf("%v: the rule is below the exact bound", n)
		}
	}
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
			n := RequiredTrials(k, tt.p, tt.alpha)
			if n != want {
				t.Errorf("p %v, alpha %v, %d faults: n = %d, want %d", tt.p, tt.alpha, k, n, want)
			}
			if UpperBound(float64(k), float64(n), tt.alpha) > tt.p || UpperBound(float64(k), float64(n-1), tt.alpha) <= tt.p {
				t.Errorf("p %v, %d faults: n = %d is not where the bound falls below", tt.p, k, n)
			}
		}
	}
	for _, never := range [][2]float64{{0, 0.05}, {-1, 0.05}, {math.NaN(), 0.05}, {0.1, 0}, {0.1, math.NaN()}} {
		if n := RequiredTrials(0, never[0], never[1]); n != math.MaxInt {
			t.Errorf("%v: %d", never, n)
		}
	}
	near(t, "0.95^59", AtMost(0, 59, 0.05), 0.048495)
	near(t, "0.95^60", AtMost(0, 60, 0.05), 0.046070)
}

func TestSeen(t *testing.T) {
	for n, want := range map[int]float64{10: 0.019821, 66: 0.123775, 100: 0.181433, 300: 0.451518, 500: 0.632489, 1500: 0.950362, 3960: 0.999639, 0: 0} {
		near(t, fmt.Sprint(n), Seen(n, 1./500), want)
	}
	// A fault of 1 in 500 passes one run of 1,500, and one of three.
	near(t, "passes once", 1-Seen(1500, 1./500), 0.049638)
	near(t, "passes in three tries", 1-math.Pow(Seen(1500, 1./500), 3), 0.141644)
	if n := MedianToFirst(1. / 500); n != 347 {
		t.Errorf("median to the first fault %d", n)
	}
	if MedianToFirst(0) != 0 || MedianToFirst(1) != 1 || Seen(5, 1) != 1 || Seen(5, 0) != 0 {
		t.Error("the ends of the rate")
	}
}

// Six control events are needed; that many come with probability 0.8 from these
// numbers on.
func TestTrialsForSixEvents(t *testing.T) {
	for _, tt := range []struct {
		p float64
		n int
	}{{1. / 500, 3952}, {2. / 37, 145}} {
		if got := 1 - AtMost(5, tt.n, tt.p); !(got >= 0.8) {
			t.Errorf("%d: %v", tt.n, got)
		}
		if got := 1 - AtMost(5, tt.n-1, tt.p); got >= 0.8 {
			t.Errorf("%d: %v already", tt.n-1, got)
		}
	}
}

// A bound never falls when a fault is added or a trial taken away, and two
// bounds of the same trials stand in their order.
func TestBoundsAreMonotone(t *testing.T) {
	for n := 1.0; n < 200; n += 7 {
		last := -1.0
		for k := 0.0; k <= n; k++ {
			u := UpperBound(k, n, 0.05)
			if !(u >= last) || !(u <= 1) {
				t.Fatalf("%v/%v: %v after %v", k, n, u, last)
			}
			if fewer := UpperBound(k, n-1, 0.05); !(fewer >= u) {
				t.Fatalf("%v/%v: %v, but %v with one trial less", k, n, u, fewer)
			}
			last = u
		}
	}
}

func TestBoundProperties(t *testing.T) {
	check := func(faults, clean uint16, a uint8) bool {
		k, n := float64(faults%50), float64(faults%50)+float64(clean)
		alpha := (float64(a) + 1) / 258
		lower, upper := LowerBound(k, n, alpha), UpperBound(k, n, alpha)
		if n == 0 {
			return lower == 0 && upper == 1
		}
		// The rate that was seen lies between, wider confidence is wider, and what
		// may be watched is wider than what may not.
		rate := k / n
		return (alpha > 0.5 || lower <= rate && rate <= upper) &&
			UpperBound(k, n, alpha/2) >= upper && LowerBound(k, n, alpha/2) <= lower &&
			Anytime(k, n, alpha) >= upper-1e-12
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}
