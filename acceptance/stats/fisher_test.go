package stats

import (
	"fmt"
	"math"
	"testing"
	"testing/quick"
)

func TestFisherExact(t *testing.T) {
	const skip = -1
	tests := []struct {
		k1, n1, k2, n2     int
		two, less, greater float64
	}{
		{2, 37, 1, 25, 1, 0.794553, 0.645690},
		{0, 15, 1, 14, 0.482759, skip, skip},
		{0, 60, 2, 37, 0.143041, skip, skip},
		{0, 60, 5, 60, 0.057315, skip, skip},
		{0, 60, 6, 60, 0.027412, 0.013706, skip},
		{1, 8, 8, 8, 0.001399, 0.000699, skip},
		{6, 13, 0, 8, 0.045555, 1, 0.031623},
		{0, 1500, 6, 1500, 0.031094, skip, skip},
		{3, 4, 1, 4, 0.485714, skip, skip},    // the lady and her tea
		{1, 10, 11, 14, 0.002759, skip, skip}, // a textbook's
	}
	for _, tt := range tests {
		name := fmt.Sprintf("%d/%d v %d/%d", tt.k1, tt.n1, tt.k2, tt.n2)
		got := FisherExact(tt.k1, tt.n1, tt.k2, tt.n2)
		near(t, name+" two-sided", got.TwoSided, tt.two)
		if tt.less != skip {
			near(t, name+" less", got.Less, tt.less)
		}
		if tt.greater != skip {
			near(t, name+" greater", got.Greater, tt.greater)
		}
	}
}

// Far out in the tail an absolute tolerance would count tables that are much
// likelier than the one observed.
func TestFisherTies(t *testing.T) {
	got := FisherExact(0, 1500, 50, 1500).TwoSided
	if want := 1.172761e-15; !(math.Abs(got/want-1) <= 5e-7) {
		t.Errorf("0/1500 v 50/1500: %.6e, want %.6e", got, want)
	}
	// The mirror of a table weighs as much to the last digit, and counts.
	if got := FisherExact(0, 40, 5, 40); got.TwoSided != 2*got.Less {
		t.Errorf("0/40 v 5/40: two-sided %v, less %v", got.TwoSided, got.Less)
	}
}

func TestFisherOfNonsense(t *testing.T) {
	for _, in := range [][4]int{{0, 0, 0, 5}, {0, 5, 0, 0}, {-1, 5, 0, 5}, {6, 5, 0, 5}, {0, 5, 6, 5}} {
		if got := FisherExact(in[0], in[1], in[2], in[3]); got != (Fisher{1, 1, 1}) {
			t.Errorf("%v: %+v", in, got)
		}
	}
}

// The test does not care which group comes first.
func TestFisherIsSymmetric(t *testing.T) {
	check := func(a, b, c, d uint8) bool {
		n1, n2 := int(a%60)+1, int(b%60)+1
		k1, k2 := int(c)%(n1+1), int(d)%(n2+1)
		x, y := FisherExact(k1, n1, k2, n2), FisherExact(k2, n2, k1, n1)
		return x.TwoSided == y.TwoSided && x.Less == y.Greater && x.Greater == y.Less &&
			x.TwoSided > 0 && x.TwoSided <= 1 && x.Less+x.Greater > 1-1e-12
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

func TestPower(t *testing.T) {
	near(t, "60 arms, 2/37 v 0", Power(60, 2./37, 60, 0, 0.05), 0.104636)
	near(t, "60 arms, 0.1 v 0", Power(60, 0.1, 60, 0, 0.05), 0.562834)
	near(t, "1500 requests, 1/500 v 0", Power(1500, 1./500, 1500, 0, 0.05), 0.083716)
	near(t, "3000 requests", Power(3000, 1./500, 3000, 0, 0.05), 0.554481)
	near(t, "4000 requests", Power(4000, 1./500, 4000, 0, 0.05), 0.809039)
	near(t, "equal rates of 0", Power(60, 0, 60, 0, 0.05), 0)
	near(t, "1 v 0", Power(60, 1, 60, 0, 0.05), 1)
}
