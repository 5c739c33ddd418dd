package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Anytime is an upper bound that holds at every moment at once: it may be
// looked at after each trial, and stopping because of it does no harm. It pays
// for that with width. It informs while a run goes on; a gate uses UpperBound at
// the planned number.
func Anytime(k, n, alpha float64) float64 { return BetaMixture(k, n, 1, 1, alpha) }

// BetaMixture is the bound of Anytime for those who expect rates like
// Beta(a, b): a rate p is excluded once the mixture explains the trials 1/alpha
// times better than p does. It is 1 without trials.
func BetaMixture(k, n, a, b, alpha float64) float64 {
	if !(n > 0) || !(k >= 0 && k < n) || !(a > 0 && b > 0) || !(alpha > 0 && alpha < 1) || math.IsInf(n, 0) {
		return 1
	}
	mixture := mathext.Lbeta(k+a, n-k+b) - mathext.Lbeta(a, b) + math.Log(alpha)
	if k == 0 {
		return min(1, -math.Expm1(mixture/n))
	}
	excluded := func(p float64) bool {
		return mixture >= k*math.Log(p)+(n-k)*math.Log1p(-p)
	}
	low, high := k/n, 1.0
	for range 200 {
		mid := low + (high-low)/2
		if mid == low || mid == high {
			break
		}
		if excluded(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
