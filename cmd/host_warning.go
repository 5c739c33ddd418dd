package cmd

import (
	"fmt"
	"io"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager/store"
)

// installedPackage is a package as "install" prints it.
type installedPackage struct {
	listedPackage
	Warnings []string `json:"warnings"` // what the package wants of this host and the host has not
}

// showInstalled says that a package is there, and on stderr what this host lacks for it: an engine that misses a
// library often starts all the same, on the CPU.
func (a *app) showInstalled(p *store.Package, human func(io.Writer) error) error {
	doc := installedPackage{listed(p), append([]string{}, a.host().Missing(p.Manifest)...)}
	if err := a.show(doc, human); err != nil {
		return err
	}
	for _, w := range doc.Warnings {
		fmt.Fprintf(a.stderr, "1bit: warning: %s would not start here, or would fall back to the CPU: %s\n", p.Name, ui.Clean(w))
	}
	return nil
}

// printVerification writes the result of verifying the package of that name.
func printVerification(w io.Writer, name string, v *store.Verification) {
	damaged := v.Damaged()
	hosts := len(v.Problems) - len(damaged)
	switch {
	case v.OK:
		fmt.Fprintf(w, "%s is as it was made: %s, %s\n", name, plural(v.Files, "file"), ui.Size(v.Bytes))
		return
	case len(damaged) > 0:
		fmt.Fprintf(w, "%s is NOT as it was made: %s\n", name, plural(len(damaged), "problem"))
	default:
		fmt.Fprintf(w, "%s is as it was made, but would NOT work on this host: %s\n", name, plural(hosts, "problem"))
	}
	for _, p := range v.Problems {
		fmt.Fprintf(w, "  %s: %s\n", ui.Clean(p.Path), ui.Clean(p.What))
	}
	if len(damaged) > 0 {
		fmt.Fprintf(w, "  remove it and install it again: 1bit pkg remove %s (files that do not belong there may just be deleted)\n", name)
	}
	if hosts > 0 {
		fmt.Fprint(w, "  install on this host what it lacks; until then its programs do not start, or fall back to the CPU\n"+
			"  (a library that only an LD_LIBRARY_PATH leads to: name its folder in the recipe, requires: - path: FOLDER)\n")
	}
}
