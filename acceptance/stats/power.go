package stats

import "math"

// Power is the probability that Fisher's two-sided test tells two groups of n1
// and n2 trials apart (p < alpha) when their rates are p1 and p2.
func Power(n1 int, p1 float64, n2 int, p2, alpha float64) float64 {
	sum := 0.0
	for x1 := range n1 + 1 {
		w1 := exactly(x1, n1, p1)
		if w1 < negligible {
			continue
		}
		for x2 := range n2 + 1 {
			w2 := exactly(x2, n2, p2)
			if w1*w2 < negligible || !(FisherExact(x1, n1, x2, n2).TwoSided < alpha) {
				continue
			}
			sum += w1 * w2
		}
	}
	return sum
}

// negligible is a probability that does not show in six digits, summed over all
// tables that have less.
const negligible = 1e-13

// exactly is the probability of exactly k faults in n trials at rate p.
func exactly(k, n int, p float64) float64 {
	switch {
	case p <= 0:
		return one(k == 0)
	case p >= 1:
		return one(k == n)
	}
	all, _ := math.Lgamma(float64(n + 1))
	some, _ := math.Lgamma(float64(k + 1))
	rest, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(all - some - rest + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
