package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestWilson(t *testing.T) {
	for _, tt := range []struct{ k, n, z, lower, upper float64 }{
		{2, 37, Z95, 0.014951, 0.177047},
		{1, 25, Z95, 0.007096, 0.195441},
		{0, 60, Z95, 0, 0.060172},
		{0, 1500, Z95, 0, 0.002554},
		{2, 37, 1.96, 0.014951, 0.177050},
		{1, 25, 1.96, 0.007096, 0.195445},
		{0, 60, 1.96, 0, 0.060174},
		{0, 1500, 1.96, 0, 0.002555},
	} {
		lower, upper := Wilson(tt.k, tt.n, tt.z)
		near(t, fmt.Sprintf("%v/%v lower", tt.k, tt.n), lower, tt.lower)
		near(t, fmt.Sprintf("%v/%v upper", tt.k, tt.n), upper, tt.upper)
	}
	if lower, upper := Wilson(math.NaN(), 60, Z95); lower != 0 || upper != 1 {
		t.Errorf("of NaN: %v to %v", lower, upper)
	}
}

func TestCredible(t *testing.T) {
	for n, want := range map[float64][2]float64{60: {0.047924, 0.031376}, 300: {0.009903, 0.006377}, 1500: {0.001994, 0.001279}} {
		near(t, fmt.Sprintf("uniform, 0/%v", n), Credible(0, n, 1, 1, 0.05), want[0])
		near(t, fmt.Sprintf("Jeffreys, 0/%v", n), Credible(0, n, 0.5, 0.5, 0.05), want[1])
	}
}

func TestProbabilityLess(t *testing.T) {
	near(t, "2/37 v 1/25", ProbabilityLess(2, 37, 1, 25), 0.461382)
	near(t, "0/60 v 2/37", ProbabilityLess(0, 60, 2, 37), 0.946216)
	near(t, "equal", ProbabilityLess(3, 50, 3, 50), 0.5)
	near(t, "both ways", ProbabilityLess(2, 37, 1, 25)+ProbabilityLess(1, 25, 2, 37), 1)
	if !math.IsNaN(ProbabilityLess(2, 1, 0, 5)) {
		t.Error("more faults than trials have a probability")
	}
}

func TestPoisson(t *testing.T) {
	for k, want := range []float64{2.995732, 4.743865, 6.295794, 7.753657, 9.153519, 10.513035} {
		near(t, fmt.Sprintf("%d one-sided", k), PoissonUpper(k, 0.05), want)
	}
	for k, want := range []float64{3.688879, 5.571643, 7.224688} {
		near(t, fmt.Sprintf("%d two-sided", k), PoissonUpper(k, 0.025), want)
	}
	near(t, "none in 6 hours", RateUpper(0, 6, 0.05), 2.995732/6)
	near(t, "6 in 3 h v 0 in 5 h", RateGreater(6, 3, 0, 5), 0.002781)
	near(t, "nothing seen", RateGreater(0, 3, 2, 5), 1)
	for _, exposure := range []float64{0, -1, math.NaN()} {
		if !math.IsInf(RateUpper(0, exposure, 0.05), 1) || RateGreater(1, exposure, 0, 5) != 1 {
			t.Errorf("an exposure of %v is evidence", exposure)
		}
	}
}

func TestAnytime(t *testing.T) {
	for n, want := range map[float64]float64{60: 0.111698, 300: 0.028593, 1500: 0.006850, 3960: 0.002844} {
		near(t, fmt.Sprintf("0/%v", n), Anytime(0, n, 0.05), want)
	}
	if !(Anytime(0, 5828, 0.05) <= 1./500) || Anytime(0, 5827, 0.05) <= 1./500 {
		t.Errorf("1/500 is not excluded first by 5828: %v, %v", Anytime(0, 5827, 0.05), Anytime(0, 5828, 0.05))
	}
	near(t, "mixture 0/1500", BetaMixture(0, 1500, 0.5, 250, 0.05), 0.002643)
	// With faults the bound is where the mixture is 20 times as good.
	u := Anytime(2, 100, 0.05)
	ratio := math.Exp(lbeta(3, 99) - 2*math.Log(u) - 98*math.Log1p(-u))
	near(t, "ratio at the bound of 2/100, /20", ratio/20, 1)
	if !(u > UpperBound(2, 100, 0.05)) {
		t.Errorf("watched %v, fixed %v", u, UpperBound(2, 100, 0.05))
	}
}

func lbeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}

// Whoever watches the bound the whole time and stops at the worst moment is
// wrong no more often than once in twenty.
func TestAnytimeHoldsWhileWatched(t *testing.T) {
	const p, trials, runs = 0.05, 400, 2000
	state := uint64(1)
	wrong := 0
	for range runs {
		k := 0.0
		for n := 1.0; n <= trials; n++ {
			state = state*6364136223846793005 + 1442695040888963407
			if float64(state>>11)/(1<<53) < p {
				k++
			}
			// excluded(p) without the search for the bound
			if k/n < p && lbeta(k+1, n-k+1)+math.Log(0.05) >= k*math.Log(p)+(n-k)*math.Log1p(-p) {
				wrong++
				break
			}
		}
	}
	if wrong > runs/20 {
		t.Errorf("wrong in %d of %d runs", wrong, runs)
	}
}

func TestEffective(t *testing.T) {
	near(t, "25 a life, 0.1, in thousands", Effective(1500, 25, 0.1)/1000, 0.441176)
	near(t, "bound 25 a life, 0.1", UpperBound(0, Effective(1500, 25, 0.1), 0.05), 0.006767)
	near(t, "bound 25 a life, 0.5", UpperBound(0, Effective(1500, 25, 0.5), 0.05), 0.025629)
	near(t, "66 a life, 0.1", Effective(3960, 66, 0.1), 528)
	near(t, "bound 66 a life, 0.1", UpperBound(0, Effective(3960, 66, 0.1), 0.05), 0.005658)
	near(t, "66 a life, 0.5, in thousands", Effective(3960, 66, 0.5)/1000, 0.118209)
	near(t, "bound 66 a life, 0.5", UpperBound(0, Effective(3960, 66, 0.5), 0.05), 0.025024)
	near(t, "66 a life, 1", Effective(3960, 66, 1), 60)
	near(t, "bound 66 a life, 1", UpperBound(0, Effective(3960, 66, 1), 0.05), 0.048703)
	if Effective(7, 1, 0.5) != 7 || Effective(7, 0, 0.5) != 7 {
		t.Error("without clusters nothing is reduced")
	}
	if got := UpperBound(0, Effective(60, 25, math.NaN()), 0.05); got != 1 {
		t.Errorf("a correlation that is no number gives %v", got)
	}
}

func TestMannKendall(t *testing.T) {
	up := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	got := MannKendall(up)
	if got.S != 45 || got.Variance != 125 {
		t.Errorf("%+v", got)
	}
	near(t, "Z", got.Z, 3.935480)
	slices.Reverse(up)
	near(t, "Z falling", MannKendall(up).Z, -3.935480)
	if flat := MannKendall([]float64{4, 4, 4, 4, 4}); flat != (Trend{}) {
		t.Errorf("a flat line: %+v", flat)
	}
	// Ties: 1 2 2 3 has S = 5 and the variance (4*3*13 - 2*1*9)/18.
	if got := MannKendall([]float64{1, 2, 2, 3}); got.S != 5 || math.Abs(got.Variance-138./18) > 1e-12 {
		t.Errorf("with a tie: %+v", got)
	}
	if none := MannKendall(nil); none != (Trend{}) {
		t.Errorf("nothing: %+v", none)
	}
}

func TestTheilSen(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5}
	y := []float64{3, 5, 7, 1000, 11, 13} // 3 + 2x, and one that lies far off
	near(t, "slope", TheilSen(x, y), 2)
	near(t, "even number of pairs", TheilSen([]float64{0, 1, 1}, []float64{0, 1, 3}), 2)
	for name, in := range map[string][2][]float64{
		"nothing": {}, "one point": {{1}, {1}}, "one x": {{1, 1}, {1, 2}}, "NaN": {{0, 1, 2}, {0, math.NaN(), 2}},
	} {
		if got := TheilSen(in[0], in[1]); !math.IsNaN(got) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
