// Package stats holds the arithmetic of acceptance: what so many trials with so
// many faults say about a rate, and what two groups of trials say about each
// other.
//
// Exact methods only, where there is one: Clopper-Pearson bounds ([UpperBound],
// [LowerBound]), Fisher's test on whole numbers ([FisherExact]), Poisson bounds
// for faults in a time ([PoissonUpper]). [Anytime] may be looked at while the
// trials go on; the others hold at a number of trials fixed before. [Wilson],
// [Credible] and [RuleOfThree] are for display: they are less careful.
//
// alpha is one minus the confidence: 0.05 for a bound that holds at 95 %. What
// makes no sense (no trials, NaN) gives the bound that claims nothing, 1 above
// and 0 below, so that no threshold is ever passed by it.
package stats
