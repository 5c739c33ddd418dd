package stats

// Effective reduces n trials in clusters of m, whose members are correlated by
// icc (the intraclass correlation), to the number of independent trials that say
// as much.
func Effective(n, m, icc float64) float64 {
	if !(m > 1) {
		return n
	}
	return n / (1 + (m-1)*icc)
}
