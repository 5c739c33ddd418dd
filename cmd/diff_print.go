package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager"
)

const (
	shownCommits = 20 // of a pin
	shownFiles   = 10
)

// printDifference writes a difference for people: what was lost comes first.
func printDifference(w io.Writer, d diffDocument) error {
	fmt.Fprintf(w, "%s -> %s\n", sideText(d.From), sideText(d.To))
	if d.VersionChange != "" {
		fmt.Fprintf(w, "version: %s\n", d.VersionChange)
	}
	if d.Same {
		_, err := fmt.Fprintln(w, "nothing differs")
		return err
	}
	printFixChanges(w, d.Fixes)
	for _, p := range d.Pins {
		printPin(w, p)
	}
	printFileChanges(w, d.Difference)
	for _, line := range hostLines(d.Difference) {
		fmt.Fprintln(w, ui.Clean(line))
	}
	return nil
}

func sideText(s diffSide) string { return strings.TrimSpace(s.Package + " " + s.Version) }

func printFixChanges(w io.Writer, fixes []packager.FixChange) {
	words := []struct{ change, word string }{
		{packager.FixLost, "fix LOST"}, {packager.FixUnclear, "fix UNKNOWN now"},
		{packager.FixGained, "fix gained"}, {packager.FixLearned, "fix known now"},
	}
	for _, as := range words {
		for _, f := range fixes {
			if f.Change != as.change {
				continue
			}
			word := as.word
			if f.Change == packager.FixLearned {
				word += ": " + map[bool]string{true: "carried", false: "NOT carried"}[*f.To]
			}
			fmt.Fprintf(w, "%s: %s", word, f.ID)
			if f.Title != "" {
				fmt.Fprintf(w, " %s", ui.Clean(f.Title))
			}
			fmt.Fprintf(w, " (%s)\n", ui.Clean(or(f.How, "the new package says nothing of it")))
		}
	}
}

func printPin(w io.Writer, p movedPin) {
	from, to := shortCommit(p.From)+dirtyNote(p.FromDirty), shortCommit(p.To)+dirtyNote(p.ToDirty)
	switch {
	case p.From == "":
		fmt.Fprintf(w, "pin %s: new, at %s\n", p.Component, to)
	case p.To == "":
		fmt.Fprintf(w, "pin %s: gone, was at %s\n", p.Component, from)
	case !packager.PinChange{From: p.From, To: p.To}.Moved():
		fmt.Fprintf(w, "pin %s: %s -> %s, the same commit with changes that no commit holds\n", p.Component, from, to)
	default:
		fmt.Fprintf(w, "pin %s: %s -> %s", p.Component, from, to)
		if p.Note != "" {
			fmt.Fprintf(w, " (%s)\n", ui.Clean(p.Note))
			return
		}
		fmt.Fprintf(w, ", %s", plural(len(p.Commits), "commit"))
		if len(p.Dropped) > 0 {
			fmt.Fprintf(w, ", %s DROPPED", plural(len(p.Dropped), "commit"))
		}
		fmt.Fprintln(w)
		printCommits(w, "+", p.Commits)
		printCommits(w, "-", p.Dropped)
	}
}

// dirtyNote marks what has a checkout with changes in it.
func dirtyNote(dirty bool) string {
	if dirty {
		return " (dirty)"
	}
	return ""
}

func printCommits(w io.Writer, sign string, commits []commitDocument) {
	for _, c := range commits[:min(len(commits), shownCommits)] {
		date, _, _ := strings.Cut(c.Date, "T")
		fmt.Fprintf(w, "  %s %s %s %s\n", sign, shortCommit(c.Commit), date, ui.Clean(c.Subject))
	}
	if n := len(commits) - shownCommits; n > 0 {
		fmt.Fprintf(w, "  %s and %d more: -o json lists them\n", sign, n)
	}
}

func shortCommit(id string) string { return id[:min(len(id), 9)] }

func printFileChanges(w io.Writer, d *packager.Difference) {
	var added, removed, changed int
	for _, f := range d.Files {
		switch {
		case f.From == nil:
			added++
		case f.To == nil:
			removed++
		default:
			changed++
		}
	}
	fmt.Fprintf(w, "files: %d added, %d removed, %d changed; %s -> %s (%s)\n", added, removed, changed,
		ui.Size(d.FromSize), ui.Size(d.ToSize), growth(d.ToSize-d.FromSize))
	weight := func(f packager.FileChange) int64 {
		if f.To != nil && f.From != nil {
			return max(f.To.Size, f.From.Size)
		}
		return max(f.Growth(), -f.Growth())
	}
	files := slices.Clone(d.Files)
	slices.SortStableFunc(files, func(a, b packager.FileChange) int { return cmp.Compare(weight(b), weight(a)) })
	for _, f := range files[:min(len(files), shownFiles)] {
		sign := "~"
		switch {
		case f.From == nil:
			sign = "+"
		case f.To == nil:
			sign = "-"
		}
		fmt.Fprintf(w, "  %s %s (%s)\n", sign, ui.Clean(f.Path), growth(f.Growth()))
	}
	if n := len(files) - shownFiles; n > 0 {
		fmt.Fprintf(w, "  and %d smaller: -o json lists them\n", n)
	}
}

// growth is a number of bytes with its sign.
func growth(n int64) string {
	switch {
	case n < 0:
		return "-" + ui.Size(-n)
	case n == 0:
		return "same size"
	}
	return "+" + ui.Size(n)
}

func hostLines(d *packager.Difference) []string {
	var lines []string
	values := func(what string, changes []packager.ValueChange) {
		for _, c := range changes {
			switch {
			case c.From == "":
				lines = append(lines, what+" "+c.Name+": new"+target(c.Name, c.To))
			case c.To == "":
				lines = append(lines, what+" "+c.Name+": gone")
			default:
				lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", what, c.Name, c.From, c.To))
			}
		}
	}
	values("entry point", d.EntryPoints)
	values("front door", d.FrontDoor)
	values("GPU target", d.GPUTargets)
	for _, r := range d.Requirements {
		switch {
		case r.From == nil:
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("host must have now: %s %s = %s", r.Kind, r.Name, *r.To), " = "))
		case r.To == nil:
			lines = append(lines, fmt.Sprintf("host need no longer have: %s %s", r.Kind, r.Name))
		default:
			lines = append(lines, fmt.Sprintf("host must have: %s %s = %s instead of %s", r.Kind, r.Name, *r.To, *r.From))
		}
	}
	for _, l := range d.Libraries {
		switch {
		case l.From == nil:
			lines = append(lines, fmt.Sprintf("host must have now: library %s, for %s", l.Name, l.To.NeededBy))
		case l.To == nil:
			lines = append(lines, "host need no longer have: library "+l.Name)
		default:
			lines = append(lines, fmt.Sprintf("library %s is looked for in %s instead of %s", l.Name, or(join(l.To.Dirs), "the usual places"), or(join(l.From.Dirs), "the usual places")))
		}
	}
	for _, c := range []*packager.ValueChange{d.Machine, d.Glibc} {
		if c != nil {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", c.Name, or(c.From, "none"), or(c.To, "none")))
		}
	}
	return lines
}

// target is what a name stands for, where that is not the name itself.
func target(name, to string) string {
	if to == name {
		return ""
	}
	return ", " + to
}
