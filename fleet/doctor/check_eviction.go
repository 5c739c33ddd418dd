package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/packager"
)

// eviction looks for settings that take queues off the GPU in the middle of their work, under a package that cannot
// stand that.
func eviction() Check {
	return Check{
		Name:   "eviction",
		Reason: "Merging and compacting pages evicts the queues of the GPU; a package without the fix of the decode race (engine#123) then gives wrong answers and NaN far more often.",
		Remedy: "Switch the service to a package that carries engine#123 (1bit pkg list --fix engine#123 shows them), or turn the setting off.",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			unseen := []error{err}
			var without []string
			for _, s := range services {
				if p := s.Package; p != nil && p.Manifest.Flavour == "hrx" && lacks(p.Manifest, "engine#123") {
					without = append(without, fmt.Sprintf("%s (%s)", s.where, p.Name))
				}
			}
			if len(without) == 0 {
				return err
			}
			for _, setting := range evictionSettings {
				n, err := l.number(setting.path)
				switch {
				case errors.Is(err, fs.ErrNotExist): // a kernel without it
				case err != nil:
					unseen = append(unseen, err)
				case n > setting.most:
					add("/"+setting.path, setting.remedy, "it is %d, and these packages are known to lack the fix: %s", n, strings.Join(without, ", "))
				}
			}
			return errors.Join(unseen...)
		},
	}
}

// evictionSettings are what makes evictions more frequent than the kernel's own defaults do.
var evictionSettings = []struct {
	path   string
	most   int
	remedy string
}{
	{"sys/kernel/mm/ksm/run", 0, "echo 2 | sudo tee /sys/kernel/mm/ksm/run"},
	{"proc/sys/vm/compaction_proactiveness", 20, "sudo sysctl vm.compaction_proactiveness=0"},
}

// lacks tells whether a package is known not to carry a fix. That nothing is known of it is no "lacks".
func lacks(m *packager.Manifest, id string) bool {
	i := slices.IndexFunc(m.Fixes, func(f packager.Fix) bool { return f.ID == id })
	return i >= 0 && m.Fixes[i].Carried != nil && !*m.Fixes[i].Carried
}

// number reads a file that holds a number.
func (l *look) number(path string) (int, error) {
	data, err := procfs.Read(l.path(path))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", l.path(path), err)
	}
	return n, nil
}
