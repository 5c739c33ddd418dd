package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// Missing lists what a package wants of the host and the host has not: its requirements, and what its programs
// would not find of libraries. It reads no more than the headers of those libraries.
func (h *Host) Missing(m *packager.Manifest) []string {
	out := h.Unmet(m)
	for _, p := range (linkage.Host{Root: h.Root}).Missing(m) {
		if p.Path == "." {
			out = append(out, "it "+p.What)
		} else {
			out = append(out, p.Path+" "+p.What)
		}
	}
	return out
}

// Unmet lists the requirements of a package, but for libraries, that the host does not meet.
func (h *Host) Unmet(m *packager.Manifest) []string {
	var out []string
	for _, r := range m.Requires {
		if problem := h.unmet(r); problem != "" {
			out = append(out, problem)
		}
	}
	return out
}

// unmet says why a requirement is not met, "" when it is.
func (h *Host) unmet(r packager.Requirement) string {
	switch r.Kind {
	case packager.RequirePath, packager.RequireDevice:
		info, err := os.Stat(r.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Sprintf("the %s %s is not there", r.Kind, r.Name)
		case err != nil:
			return fmt.Sprintf("the %s %s cannot be seen: %v", r.Kind, r.Name, err)
		case r.Kind == packager.RequireDevice && info.Mode()&fs.ModeDevice == 0:
			return fmt.Sprintf("%s is not a device", r.Name)
		}
	case packager.RequireLibrary: // looked for with all others
	case packager.RequireKernelParameter:
		module, name, _ := strings.Cut(r.Name, ".")
		data, err := os.ReadFile(filepath.Join(h.sys(), "module", module, "parameters", name))
		if err != nil {
			return fmt.Sprintf("the kernel parameter %s=%s cannot be checked: %v", r.Name, r.Value, err)
		}
		if got := strings.TrimSpace(string(data)); got != r.Value {
			return fmt.Sprintf("the kernel parameter %s is %s, not %s", r.Name, got, r.Value)
		}
	default:
		return fmt.Sprintf("the requirement %s %s is not known to this version", r.Kind, r.Name)
	}
	return ""
}
