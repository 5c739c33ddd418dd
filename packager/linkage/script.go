package linkage

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// maxScriptLine is how much of a script's first line the kernel looks at
// (BINPRM_BUF_SIZE).
const maxScriptLine = 256

// readScript reads the first line of a script as the kernel does (man 2
// execve): behind #! and blanks the interpreter's path, and what follows that
// on the line. Of a file that names none it makes nothing.
func readScript(f *file) (*Object, error) {
	b, err := f.bytes(0, int(min(f.size, maxScriptLine)))
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(b[2:], []byte("\n"))
	line, _, _ = bytes.Cut(line, []byte{0})
	words := strings.FieldsFunc(string(line), func(c rune) bool { return c == ' ' || c == '\t' })
	if len(words) == 0 {
		return nil, nil
	}
	return &Object{Script: words}, nil
}

// script says what is wrong with the interpreter of a script that can be
// started: only the machine that built it has it.
func (r *resolver) script(o *Object, forbidden []string) []Problem {
	if !started(r.m, o) {
		return nil
	}
	problem := func(format string, args ...any) []Problem {
		return []Problem{{Path: o.Path, What: fmt.Sprintf(format, args...)}}
	}
	const begin = ": begin it with #!/bin/sh or with another program that its hosts have"
	if name := o.Script[0]; !path.IsAbs(name) {
		return problem("is started by %q, which is not an absolute path%s", name, begin)
	}
	for i, word := range o.Script {
		if !path.IsAbs(word) {
			continue
		}
		verb := "is started by"
		if i > 0 {
			verb = "is started with"
		}
		word = path.Clean(word)
		if below(word, forbidden) != "" {
			return problem("%s %q, which is in a folder of the machine that built it%s", verb, o.Script[i], begin)
		}
		if home := below(word, homes); home != "" {
			return problem("%s %q, and no package may look into %s%s", verb, o.Script[i], home, begin)
		}
	}
	return nil
}

// started tells whether an object is a script that can be started.
func started(m *packager.Manifest, o *Object) bool {
	if len(o.Script) == 0 {
		return false
	}
	f := m.Lookup(o.Path)
	return f != nil && f.Mode&0o111 != 0
}

// interpreters says which scripts of a package are started by what the host
// has not.
func (h Host) interpreters(m *packager.Manifest, objects []*Object) []Problem {
	there := map[string]bool{}
	var out []Problem
	for _, o := range objects {
		if !started(m, o) || !path.IsAbs(o.Script[0]) {
			continue
		}
		name := o.Script[0]
		if _, known := there[name]; !known {
			there[name] = h.exists(name)
		}
		if !there[name] {
			out = append(out, Problem{Path: o.Path, What: fmt.Sprintf("is a script for %s, which this host lacks", name)})
		}
	}
	return out
}
