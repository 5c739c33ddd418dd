package stats

import "math/big"

// Fisher holds the three probabilities of Fisher's exact test.
type Fisher struct {
	TwoSided float64 // tables as unlikely as this one, or less likely
	Less     float64 // so few faults in the first group, or fewer
	Greater  float64 // so many, or more
}

// FisherExact compares k1 faults in n1 trials with k2 in n2, given how many
// there were in all. Tables are weighed by whole numbers, so which of them are as
// unlikely as the observed one is no matter of rounding. Groups without trials,
// or with more faults than trials, give 1 everywhere: nothing is shown.
func FisherExact(k1, n1, k2, n2 int) Fisher {
	if k1 < 0 || k2 < 0 || k1 > n1 || k2 > n2 || n1 == 0 || n2 == 0 {
		return Fisher{1, 1, 1}
	}
	k := k1 + k2
	low, high := max(0, k-n2), min(k, n1)
	// Weight of the table with x faults in the first group: C(n1,x)*C(n2,k-x).
	weight := new(big.Int).Mul(binomial(n1, low), binomial(n2, k-low))
	weights := make([]*big.Int, 0, high-low+1)
	total := new(big.Int)
	for x := low; ; x++ {
		weights = append(weights, new(big.Int).Set(weight))
		total.Add(total, weight)
		if x == high {
			break
		}
		weight.Mul(weight, factor(n1-x, k-x))
		weight.Quo(weight, factor(x+1, n2-k+x+1))
	}
	observed := weights[k1-low]
	var two, less, greater big.Int
	for i, w := range weights {
		if w.Cmp(observed) <= 0 {
			two.Add(&two, w)
		}
		if i <= k1-low {
			less.Add(&less, w)
		}
		if i >= k1-low {
			greater.Add(&greater, w)
		}
	}
	share := func(part *big.Int) float64 {
		f, _ := new(big.Rat).SetFrac(part, total).Float64()
		return f
	}
	return Fisher{share(&two), share(&less), share(&greater)}
}

func binomial(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }

func factor(a, b int) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
}
