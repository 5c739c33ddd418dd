package fleet

import (
	"fmt"
	"os"
	"slices"
)

// drift says what has changed about the lines that adopt took over: they were edited, moved to another file or
// removed, or a new one would decide in their place. A line that only moved within its file has not changed.
// lines are those of the unit's own files.
func (v *view) drift(lines []ownLine) []string {
	d := v.active
	if len(d.Adopted) == 0 {
		return nil
	}
	var out, told []string
	for _, o := range d.Adopted {
		if what, where := changed(o, d.Adopted, lines); what != "" {
			out, told = append(out, what), append(told, where)
		}
	}
	for _, l := range v.hidden(lines) {
		known := slices.ContainsFunc(d.Adopted, func(o Origin) bool { return o.SHA256 == l.digest() })
		if !known && !slices.Contains(told, l.at()) {
			out = append(out, fmt.Sprintf("%s: %s was added and does not decide", l.at(), l.text()))
		}
	}
	return out
}

// changed says what became of a line, "" where it is as it was, and where it is now.
func changed(o Origin, all []Origin, lines []ownLine) (what, where string) {
	at := fmt.Sprintf("%s:%d", o.File, o.Line)
	moved, here := "", ""
	for _, l := range lines {
		switch {
		case l.digest() != o.SHA256:
		case l.file == o.File:
			return "", ""
		default:
			moved = l.at()
		}
	}
	if l, ok := lineAt(lines, o.File, o.Line); ok && !slices.ContainsFunc(all, func(p Origin) bool { return p.SHA256 == l.digest() }) {
		here = l.text()
	}
	_, err := os.Lstat(o.File)
	switch {
	case moved != "":
		return fmt.Sprintf("the line of %s is at %s now", at, moved), moved
	case err != nil:
		return fmt.Sprintf("%s is gone", o.File), at
	case here != "":
		return fmt.Sprintf("the line of %s was edited or removed, and there is %s", at, here), at
	}
	return fmt.Sprintf("the line of %s was edited or removed", at), at
}

// hidden are the lines that would decide, were it not for our drop-in, and do not.
func (v *view) hidden(lines []ownLine) []ownLine {
	var out []ownLine
	if len(v.active.Start) > 0 {
		out = inForce(lines, "Service", "ExecStart")
	}
	without, err := v.without()
	if err != nil {
		return out
	}
	effective, now := without.Environment(), v.settings.Environment()
	for _, a := range v.active.Environment {
		if set, ok := effective[a.Key]; ok && (now[a.Key].File != set.File || now[a.Key].Line != set.Line) {
			if l, ok := lineAt(lines, set.File, set.Line); ok && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// describeAdoption adds the lines that adopt took over, what has changed about them since, and what to do.
func (v *view) describeAdoption(s *Service) {
	if len(v.active.Adopted) == 0 {
		return
	}
	lines := ownLines(v.disk, v.path)
	for _, o := range v.active.Adopted {
		s.Adopted = append(s.Adopted, AdoptedLine{o.File, o.Line})
	}
	if len(v.active.Start) > 0 {
		for _, l := range inForce(lines, "Service", "ExecStart") {
			s.Shadowed = append(s.Shadowed, Place{File: l.file, Line: l.Number, Value: l.Value, Setting: l.Key})
		}
	}
	_, _, beaten := winner(v.settings, v.path, v.active) // then what the own lines say has its effect
	if base, err := v.base(); err == nil && !beaten && v.active.Act == actAdopt && !base.isZero() && !base.same(v.active.Package) {
		s.find("adoption-drift", fmt.Sprintf("to take that up, 1bit pkg switch %s %s", s.Unit, base.Name),
			"it was adopted with %s, and the link in its own lines leads to %s now, which has no effect", v.active.Package.Name, base.Name)
	}
	for _, what := range v.drift(lines) {
		s.find("adoption-drift", fmt.Sprintf("to take it over, 1bit pkg unadopt %s, then adopt it again", s.Unit),
			"it was adopted, and since then %s, which has no effect", what)
	}
}
