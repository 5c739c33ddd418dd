package linkage

// For tests outside, which use what itself uses this package.
var (
	LoaderOf = loaderOf
	Ask      = ask
	Ours     = ours
)
