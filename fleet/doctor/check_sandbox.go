package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// sandbox looks for settings of a unit that hide the GPU, or the package itself, from the service.
func sandbox() Check {
	return Check{
		Name:   "sandbox",
		Reason: "What the unit hides from the service is not there for it: the server does not start, or starts without the GPU.",
		Remedy: "Take the setting out of [Service], then: systemctl --user daemon-reload",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if !s.loaded() || s.Package == nil {
					continue
				}
				hides := func(key, value, what string) {
					where, line := s.where, s.Settings.Last("Service", key)
					if line.File != "" {
						where = fmt.Sprintf("%s:%d", line.File, line.Number)
					}
					add(where, s.typed("take it out, then: systemctl --user daemon-reload && 1bit pkg restart UNIT"), "%s: %s=%s hides %s", s.where, key, value, what)
				}
				if len(s.Settings.Values("Service", "BindPaths"))+len(s.Settings.Values("Service", "BindReadOnlyPaths")) > 0 {
					continue // it hides all but some, and whoever writes that knows which
				}
				if s.Loaded.PrivateDevices && usesGPU(s.Package.Manifest) {
					hides("PrivateDevices", "yes", "the devices of the GPU, which "+s.Package.Name+" uses")
				}
				for _, key := range []string{"InaccessiblePaths", "TemporaryFileSystem", "NoExecPaths"} {
					for _, value := range s.Settings.Values("Service", key) {
						if word := hiding(value.Value, s.Package.Path); word != "" && (key != "NoExecPaths" || len(s.Settings.Values("Service", "ExecPaths")) == 0) {
							add(fmt.Sprintf("%s:%d", value.File, value.Number), s.typed("take it out, then: systemctl --user daemon-reload && 1bit pkg restart UNIT"),
								"%s: %s=%s hides the package at %s, or keeps it from being run", s.where, key, word, s.Package.Path)
						}
					}
				}
				if home := s.Loaded.ProtectHome; (home == "yes" || home == "tmpfs") && belowHome(s.Package) {
					hides("ProtectHome", home, "the package at "+s.Package.Path)
				}
			}
			return err
		},
	}
}

// usesGPU tells whether a package has GPU code, or wants a device.
func usesGPU(m *packager.Manifest) bool {
	return len(m.GPUTargets) > 0 || slices.ContainsFunc(m.Requires, func(r packager.Requirement) bool { return r.Kind == packager.RequireDevice })
}

// belowHome tells whether a package lies where ProtectHome= hides it.
func belowHome(p *store.Package) bool {
	return slices.ContainsFunc([]string{"/home/", "/root/", "/run/user/"}, func(dir string) bool { return strings.HasPrefix(p.Path, dir) })
}

// hiding is the path of a list that a package lies on or below, "" where none is. One with a specifier is not understood.
func hiding(list, path string) string {
	for word := range strings.FieldsSeq(list) {
		dir, _, _ := strings.Cut(strings.TrimLeft(strings.Trim(word, `"'`), "-+"), ":")
		if strings.HasPrefix(dir, "/") && within(path, filepath.Clean(dir)) {
			return dir
		}
	}
	return ""
}
