package stats

import "math"

// Z95 is the normal quantile of a two-sided interval at 95 %.
const Z95 = 1.959963984540054

// Wilson is the score interval of k faults in n trials, z standard deviations
// wide on each side. It is for display: it may fall below what it should hold.
func Wilson(k, n, z float64) (lower, upper float64) {
	if !(n > 0) || !(k >= 0 && k <= n) || !(z > 0) {
		return 0, 1
	}
	p, z2 := k/n, z*z
	centre := (p + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(0, centre-half), min(1, centre+half)
}
