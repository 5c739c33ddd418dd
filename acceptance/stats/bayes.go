package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Credible is the rate below which k faults in n trials leave all but alpha of
// the belief, when the belief before was Beta(a, b): 1, 1 is uniform, 0.5, 0.5
// Jeffreys', which is less careful than an exact bound and never gates.
func Credible(k, n, a, b, alpha float64) float64 {
	if !(n >= 0) || !(k >= 0 && k <= n) || !(a > 0 && b > 0) || !(alpha > 0 && alpha < 1) || math.IsInf(n, 0) {
		return 1
	}
	return mathext.InvRegIncBeta(k+a, n-k+b, 1-alpha)
}

// ProbabilityLess is the probability that the rate behind k1 faults in n1 trials
// is less than the one behind k2 in n2, both uniform before. It is the exact
// sum; nothing is drawn at random.
func ProbabilityLess(k1, n1, k2, n2 int) float64 {
	if k1 < 0 || k2 < 0 || k1 > n1 || k2 > n2 {
		return math.NaN()
	}
	a1, b1 := float64(k1+1), float64(n1-k1+1)
	b2 := float64(n2 - k2 + 1)
	sum := 0.0
	for i := range k2 + 1 {
		x := float64(i)
		sum += math.Exp(mathext.Lbeta(a1+x, b1+b2) - math.Log(b2+x) - mathext.Lbeta(1+x, b2) - mathext.Lbeta(a1, b1))
	}
	return min(1, sum)
}
