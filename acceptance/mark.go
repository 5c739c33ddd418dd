package acceptance

// markVariable stands in the environment of all that a run starts, and so of all
// that those start. It finds what left its process group where no scope holds
// it, also when whoever started it is long gone.
const markVariable = "ONEBIT_SOAK"

// markOf is the mark of a run, as it stands in an environment.
func markOf(run string) string { return markVariable + "=" + run }
