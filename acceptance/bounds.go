package acceptance

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// upperBound is the one-sided Clopper-Pearson bound: the largest rate at which
// k or fewer faults in n trials still have probability alpha. n and k need not
// be whole, so that a sample reduced for its clustering can be bounded too. It
// is 1 without trials.
func upperBound(k, n, alpha float64) float64 {
	switch {
	case !(n > 0) || k >= n:
		return 1
	case k <= 0:
		return -math.Expm1(math.Log(alpha) / n)
	}
	return mathext.InvRegIncBeta(k+1, n-k, 1-alpha)
}

// lowerBound is the smallest rate at which k or more faults in n trials still
// have probability alpha.
func lowerBound(k, n, alpha float64) float64 {
	switch {
	case !(n > 0) || k <= 0:
		return 0
	case k >= n:
		return math.Exp(math.Log(alpha) / n)
	}
	return mathext.InvRegIncBeta(k, n-k+1, alpha)
}

// atMost is the probability of k or fewer faults in n trials at rate p.
func atMost(k, n int, p float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

// requiredTrials is the smallest n whose bound with k faults is at most p.
func requiredTrials(k int, p, alpha float64) int {
	low, high := k, k+1
	for atMost(k, high, p) > alpha {
		low, high = high, 2*high
	}
	for low+1 < high {
		if mid := low + (high-low)/2; atMost(k, mid, p) > alpha {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// effective reduces n trials in clusters of m, whose members are correlated by
// icc, to the number of independent ones that say as much.
func effective(n, m, icc float64) float64 {
	if !(m > 1) {
		return n
	}
	return n / (1 + (m-1)*icc)
}
