package stats

import (
	"math"
	"slices"
)

// TheilSen is the median slope of all pairs of points: the growth of y in a unit
// of x, untouched by single points that lie far off. It is NaN with fewer than
// two points of different x. The cost grows with the square of the number:
// give it at most a few thousand.
func TheilSen(x, y []float64) float64 {
	var slopes []float64
	for i := range min(len(x), len(y)) {
		for j := range i {
			if d := x[i] - x[j]; d != 0 {
				slopes = append(slopes, (y[i]-y[j])/d)
			}
		}
	}
	if len(slopes) == 0 || slices.ContainsFunc(slopes, math.IsNaN) {
		return math.NaN()
	}
	slices.Sort(slopes)
	mid := len(slopes) / 2
	if len(slopes)%2 == 1 {
		return slopes[mid]
	}
	return (slopes[mid-1] + slopes[mid]) / 2
}

// Trend is the result of MannKendall.
type Trend struct {
	S        int     // pairs that rise less pairs that fall
	Variance float64 // of S without a trend
	Z        float64 // standard deviations from no trend, after the step towards 0
}

// MannKendall tests whether a series rises or falls, whatever its shape. Values
// that are equal lessen the variance.
func MannKendall(y []float64) Trend {
	var t Trend
	for i := range y {
		for j := range i {
			switch {
			case y[i] > y[j]:
				t.S++
			case y[i] < y[j]:
				t.S--
			}
		}
	}
	n := float64(len(y))
	t.Variance = n * (n - 1) * (2*n + 5)
	sorted := slices.Sorted(slices.Values(y))
	for i := 0; i < len(sorted); {
		k := i
		for k < len(sorted) && sorted[k] == sorted[i] {
			k++
		}
		k = max(k, i+1) // NaN equals nothing
		e := float64(k - i)
		t.Variance -= e * (e - 1) * (2*e + 5)
		i = k
	}
	t.Variance /= 18
	if t.S != 0 && t.Variance > 0 {
		t.Z = (float64(t.S) - math.Copysign(1, float64(t.S))) / math.Sqrt(t.Variance)
	}
	return t
}
