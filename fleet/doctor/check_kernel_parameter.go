package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// kernelParameter looks whether the kernel runs with the parameters that packages require.
func kernelParameter() Check {
	return Check{
		Name:   "kernel-parameter",
		Reason: "A package that was accepted with a parameter of a kernel module, such as amdgpu.cwsr_enable=0, has shown nothing about a host with another value.",
		Remedy: "Set the parameter in a file of /etc/modprobe.d, and reboot.",
		find: func(_ context.Context, l *look, add adder) error {
			packages, err := l.wanted()
			unseen, by := []error{err}, map[packager.Requirement][]string{}
			for _, p := range packages {
				for _, r := range p.Manifest.Requires {
					if r.Kind == packager.RequireKernelParameter {
						by[r] = append(by[r], p.Name)
					}
				}
			}
			for _, r := range slices.SortedFunc(maps.Keys(by), func(a, b packager.Requirement) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) }) {
				names := strings.Join(by[r], ", ")
				module, name, _ := strings.Cut(r.Name, ".")
				data, err := procfs.Read(l.path("sys/module", module, "parameters", name))
				switch got := strings.TrimSpace(string(data)); {
				case errors.Is(err, fs.ErrNotExist):
					unseen = append(unseen, fmt.Errorf("%s of %s: the kernel has no such parameter: its module is not loaded", r.Name, names))
				case err != nil:
					unseen = append(unseen, fmt.Errorf("%s of %s: %w", r.Name, names, err))
				case got != r.Value:
					add(r.Name, fmt.Sprintf("with dracut -f in place of update-initramfs -u where the host has that: echo 'options %[1]s %[2]s=%[3]s' | sudo tee /etc/modprobe.d/1bit-%[1]s-%[2]s.conf && sudo update-initramfs -u && sudo reboot", module, name, r.Value),
						"it is %s, and %s %s %s", got, names, plural(len(by[r]), "wants", "want"), r.Value)
				}
			}
			return errors.Join(unseen...)
		},
	}
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// wanted are the packages that the next starts use: those that are armed, and the newest installed one.
func (l *look) wanted() (list []*store.Package, err error) {
	services, serr := l.services()
	packages, perr := l.packages()
	add := func(p *store.Package) {
		if p != nil && !slices.ContainsFunc(list, func(have *store.Package) bool { return have.Path == p.Path }) {
			list = append(list, p)
		}
	}
	for _, s := range services {
		add(s.Package)
	}
	var newest *store.Package
	for _, p := range packages {
		if newest == nil || p.InstalledAt.After(newest.InstalledAt) {
			newest = p
		}
	}
	add(newest)
	return list, errors.Join(serr, perr)
}
