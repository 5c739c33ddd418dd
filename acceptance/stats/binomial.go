package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// UpperBound is the one-sided Clopper-Pearson bound: the largest rate at which
// k or fewer faults in n trials still have probability alpha. n and k need not
// be whole, so that a sample reduced for its clustering can be bounded too. It
// is 1 without trials.
func UpperBound(k, n, alpha float64) float64 {
	switch {
	case !(alpha > 0 && alpha < 1) || !(n > 0) || !(k < n) || math.IsInf(n, 0):
		return 1
	case k <= 0:
		return -math.Expm1(math.Log(alpha) / n)
	}
	return mathext.InvRegIncBeta(k+1, n-k, 1-alpha)
}

// LowerBound is the smallest rate at which k or more faults in n trials still
// have probability alpha. It is 0 without trials.
func LowerBound(k, n, alpha float64) float64 {
	switch {
	case !(alpha > 0 && alpha < 1) || !(n > 0) || !(k > 0) || math.IsInf(n, 0):
		return 0
	case k >= n:
		return math.Exp(math.Log(alpha) / n)
	}
	return mathext.InvRegIncBeta(k, n-k+1, alpha)
}

// TwoSided is the interval that holds with confidence 1-alpha: each side at
// half of alpha.
func TwoSided(k, n, alpha float64) (lower, upper float64) {
	return LowerBound(k, n, alpha/2), UpperBound(k, n, alpha/2)
}

// RuleOfThree approximates the 95 % bound of n trials without fault, a little
// above the exact one. It is for heads, not for gates.
func RuleOfThree(n float64) float64 { return 3 / n }

// AtMost is the probability of k or fewer faults in n trials at rate p.
func AtMost(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n || p <= 0:
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

// Seen is the probability of at least one fault in n trials at rate p.
func Seen(n int, p float64) float64 {
	if n <= 0 || !(p > 0) {
		return 0
	}
	return -math.Expm1(float64(n) * math.Log1p(-min(p, 1)))
}

// MedianToFirst is the number of trials by which half of all runs at rate p
// have had their first fault. It is 0 for a rate of 0: there is none.
func MedianToFirst(p float64) int {
	if !(p > 0) {
		return 0
	}
	return max(1, int(math.Ceil(math.Ln2/-math.Log1p(-min(p, 1)))))
}

// RequiredTrials is the smallest number of trials with k faults whose upper
// bound is at most p. For what no number of trials shows (a rate of 0) it is the
// largest number there is.
func RequiredTrials(k int, p, alpha float64) int {
	if !(p > 0) || !(alpha > 0) || k < 0 {
		return math.MaxInt
	}
	low, high := k, k+1
	for high < math.MaxInt/4 && AtMost(k, high, p) > alpha {
		low, high = high, 2*high
	}
	for low+1 < high {
		if mid := low + (high-low)/2; AtMost(k, mid, p) > alpha {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
