package cmd

import "strings"

// parseSources reads the --source flags, each NAME=DIR.
func parseSources(flags []string) (map[string]string, error) {
	sources := map[string]string{}
	for _, flag := range flags {
		name, dir, ok := strings.Cut(flag, "=")
		if !ok || name == "" || dir == "" {
			return nil, usagef("--source %q is not of the form NAME=DIR, such as llama.cpp=../llama.cpp", flag)
		}
		if sources[name] != "" {
			return nil, usagef("--source %s is there twice: a component has one checkout", name)
		}
		sources[name] = dir
	}
	return sources, nil
}
