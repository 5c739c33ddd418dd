package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// PoissonUpper is the largest mean at which k or fewer faults still have
// probability alpha. Divided by the exposure (hours, tokens) it bounds the rate.
func PoissonUpper(k int, alpha float64) float64 {
	if k < 0 || !(alpha > 0 && alpha < 1) {
		return math.Inf(1)
	}
	return mathext.GammaIncRegCompInv(float64(k+1), alpha)
}

// RateUpper bounds the number of faults in a unit of exposure after k of them in
// so much exposure. It is +Inf without exposure.
func RateUpper(k int, exposure, alpha float64) float64 {
	if !(exposure > 0) {
		return math.Inf(1)
	}
	return PoissonUpper(k, alpha) / exposure
}

// RateGreater is the one-sided test that the rate behind k1 faults in an
// exposure of t1 is greater than the one behind k2 in t2: given how many there
// were in all, each falls into the first with probability t1/(t1+t2).
func RateGreater(k1 int, t1 float64, k2 int, t2 float64) float64 {
	if k1 <= 0 || !(t1 > 0 && t2 > 0) {
		return 1
	}
	return 1 - AtMost(k1-1, k1+k2, t1/(t1+t2))
}
