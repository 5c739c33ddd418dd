package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// What reaches a package over a link, such as ~/.local/share/current, is another package as soon as somebody moves the
// link. Our files therefore name the folder itself.

// pinned is a text in which every path that leads into a package over a link has that package's own folder. A path
// that names the folder already stays as it is, byte for byte.
func (p *place) pinned(text string) string {
	var b strings.Builder
	at := 0
	for _, s := range p.spans(text) {
		b.WriteString(text[at:s.from])
		b.WriteString(p.pinnedList(text[s.from:s.to]))
		at = s.to
	}
	return b.String() + p.pinnedList(text[at:])
}

// pinnedList is the same for a path or a list of paths.
func (p *place) pinnedList(value string) string {
	parts := strings.Split(value, ":")
	for i, part := range parts {
		folder, rest, ok := p.split(part)
		if !ok || strings.HasPrefix(filepath.Clean(part)+"/", folder+"/") {
			continue
		}
		parts[i] = filepath.Join(folder, rest)
		if strings.HasSuffix(part, "/") {
			parts[i] += "/"
		}
	}
	return strings.Join(parts, ":")
}

// pinned are the variables with the packages' own folders.
func (b binding) pinned(pl *place) binding {
	out := slices.Clone(b)
	for i, a := range out {
		out[i].Value = pl.pinnedList(a.Value)
	}
	return out
}

// pins notes a path that was pinned.
func pins(setting, from, to string) string {
	return fmt.Sprintf("%s reaches the package over a link: our file names %s in place of %s, so that whoever moves the link moves it no more", setting, to, from)
}

// pinnedWords are the words of a command, pinned.
func (p *place) pinnedWords(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = p.pinned(word)
	}
	return out
}

// pinsBase makes the file that a rollback of a first switch puts in place where the unit's own lines reach what serves
// over a link: without it the rollback would go wherever the link leads then. It is nil where nothing is to be pinned.
func (v *view) pinsBase(p past, next *DropIn) (*DropIn, error) {
	if v.active != nil || p.base.isZero() || p.base.same(next.Package) || p.blocked(p.base) {
		return nil, nil
	}
	own := ofSettings(v.settings, v.place)
	pinned := own.pinned(v.place)
	if slices.Equal(own, pinned) {
		return nil, nil
	}
	p.active = &DropIn{Package: p.base, Environment: pinned, Rollback: rollbackRemove}
	return p.file(p.base, next, nil)
}
