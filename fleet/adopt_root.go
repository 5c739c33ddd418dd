package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// otherRoot are the settings after which the paths of a unit are not those of this host.
	otherRoot = []string{"RootDirectory", "RootImage", "RootHash", "MountImages", "ExtensionImages", "ExtensionDirectories"}
	// otherPaths are those that hide, replace or forbid to run what lies at the paths that they list.
	otherPaths = []string{"NoExecPaths", "InaccessiblePaths", "InaccessibleDirectories", "TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths"}
)

// rooted refuses a unit in which env may not be what it is on this host, or may not be run.
func (r *rewriter) rooted(lines []ownLine) error {
	for _, key := range otherRoot {
		for _, l := range inForce(lines, "Service", key) {
			return fmt.Errorf("%w: %s: %s gives the unit other files, among which its paths mean something else", ErrRefused, l.at(), l.text())
		}
	}
	for _, key := range otherPaths {
		for _, l := range inForce(lines, "Service", key) {
			value, unsure, ok := r.specs.Expand(r.unit, l.Value)
			if !ok || unsure != "" || slices.ContainsFunc(strings.Fields(value), coversEnv) {
				return fmt.Errorf("%w: %s: %s may keep the unit from running %s, by which its program would be started: leave out what holds /usr/bin or the system's libraries",
					ErrRefused, l.at(), l.text(), envProgram)
			}
		}
	}
	return nil
}

// coversEnv tells whether a path of such a setting, as systemd lists it, has to do with env or with the libraries that
// it needs.
func coversEnv(word string) bool {
	word = strings.TrimLeft(strings.Trim(word, `"'`), "-+")
	if strings.ContainsAny(word, `"'\`) {
		return true
	}
	if from, to, ok := strings.Cut(word, ":"); ok && strings.HasPrefix(to, "/") { // what is mounted, and where
		word = to
		if at, _, ok := strings.Cut(to, ":"); ok {
			word = at
		}
	} else {
		word = from
	}
	path := filepath.Clean(word)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	within := func(below, folder string) bool {
		return below == folder || strings.HasPrefix(below, strings.TrimSuffix(folder, "/")+"/")
	}
	env, err := filepath.EvalSymlinks(envProgram)
	if within(envProgram, path) || err == nil && within(env, path) {
		return true
	}
	return slices.ContainsFunc([]string{"/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib64"}, func(lib string) bool {
		return within(lib, path) || within(path, lib)
	})
}
