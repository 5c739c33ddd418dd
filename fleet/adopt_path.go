package fleet

import (
	"os"
	"strings"
)

// span is a part of a text.
type span struct{ from, to int }

// spans finds the paths into packages in a word. A word, or what an option has after its "=", may be one path with
// anything in it, and may reach a package over a link; otherwise paths end where a shell or a list ends them.
func (p *place) spans(text string) []span {
	if p.whole(text) {
		return []span{{0, len(text)}}
	}
	if i := strings.IndexByte(text, '=') + 1; i > 0 && !strings.ContainsAny(text[:i], " \t/:;") && p.whole(text[i:]) {
		return []span{{i, len(text)}}
	}
	var out []span
	for at := 0; at < len(text); {
		from := -1
		for _, root := range p.roots {
			if i := strings.Index(text[at:], strings.TrimSuffix(root, "/")+"/1bit-"); i >= 0 && (from < 0 || at+i < from) {
				from = at + i
			}
		}
		if from < 0 {
			break
		}
		to := len(text)
		if i := strings.IndexAny(text[from:], endsPath+varies); i >= 0 {
			to = from + i
		}
		_, rest, ok := p.split(text[from:to])
		partly := rest == "" && to < len(text) && strings.IndexByte(varies, text[to]) >= 0 // as in 1bit-hrx-${ID}/bin
		if ok && !partly && !strings.Contains(pathBefore([]byte(text[:from])), "/") {
			out = append(out, span{from, to})
		}
		at = to + 1
	}
	return out
}

// whole tells whether all of a text is one path into a package.
func (p *place) whole(text string) bool {
	if _, ok := p.at(text); !ok {
		return false
	}
	if _, err := os.Lstat(text); err == nil {
		return true
	}
	return !strings.ContainsAny(text, endsPath+varies)
}

// varies are the characters by which a shell, or systemd, makes a part of a path another one.
const varies = `$*?[\`
