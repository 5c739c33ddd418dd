package fleet

import (
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
)

// buildCommit is the commit at the end of what a server says of its build, as in b10605-86c33b5d5.
var buildCommit = lazyregexp.New(`-([0-9a-f]{7,40})$`)

// otherBuild says in words that a server's build is not of the package, "" where it is or cannot be told: a
// distribution's build names no commit. sure is false where the pin was only declared by a person.
func otherBuild(m *packager.Manifest, info string) (text string, sure bool) {
	found := buildCommit().FindStringSubmatch(info)
	if found == nil || m == nil {
		return "", false
	}
	var engine *packager.Component
	for i, c := range m.Components {
		short := min(len(c.Commit), len(found[1]))
		if short >= 7 && strings.EqualFold(c.Commit[:short], found[1][:short]) {
			return "", false
		}
		if strings.HasPrefix(strings.ToLower(c.Name), "llama.cpp") {
			engine = &m.Components[i]
		}
	}
	if engine == nil || engine.Commit == "" {
		return "", false
	}
	return "the server says it is build " + info + ", and the package has " + engine.Name + " at " + engine.Commit, !engine.Declared && !engine.Dirty
}
