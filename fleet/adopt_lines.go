package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// ownLine is one assignment of a unit's own files.
type ownLine struct {
	file string
	systemd.Line
}

func (l ownLine) at() string { return fmt.Sprintf("%s:%d", l.file, l.Number) }

// text is the line as systemd reads it, continued lines in one.
func (l ownLine) text() string { return l.Key + "=" + l.Value }

// digest tells the line apart from any other: of its key and value as systemd reads them.
func (l ownLine) digest() string {
	sum := sha256.Sum256([]byte(l.text()))
	return hex.EncodeToString(sum[:])
}

func (l ownLine) origin() Origin { return Origin{l.file, l.Number, l.digest()} }

// ownLines reads the files of a unit, less ours at path, in the order in which they are merged. What cannot be read
// has none: systemd passes it over too, or the settings of the unit cannot be read either.
func ownLines(u *systemd.Unit, path string) []ownLine {
	var out []ownLine
	for _, name := range append([]string{u.FragmentPath}, u.DropInPaths...) {
		if name != "" && name != path {
			out = append(out, linesOf(name)...)
		}
	}
	return out
}

// linesOf reads one file of a unit.
func linesOf(name string) []ownLine {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	file, err := systemd.ParseFile(name, data)
	if err != nil {
		return nil
	}
	var out []ownLine
	for _, line := range file.Lines {
		out = append(out, ownLine{name, line})
	}
	return out
}

// lineAt finds the line that begins at a place.
func lineAt(lines []ownLine, file string, number int) (ownLine, bool) {
	i := slices.IndexFunc(lines, func(l ownLine) bool { return l.file == file && l.Number == number })
	if i < 0 {
		return ownLine{}, false
	}
	return lines[i], true
}

// inForce keeps the lines of a key that count: those after the last reset, and of a setting that holds one value the
// last.
func inForce(lines []ownLine, section, key string) []ownLine {
	var out []ownLine
	for _, l := range lines {
		switch {
		case l.Section != section || l.Key != key:
		case l.Value == "":
			out = nil
		case slices.Contains(single, key):
			out = []ownLine{l}
		default:
			out = append(out, l)
		}
	}
	return out
}

var (
	// single are the settings with a path that hold one value.
	single = []string{"WorkingDirectory", "RootDirectory", "RootImage", "RootVerity", "PIDFile", "TTYPath", "UtmpIdentifier",
		"StandardInput", "StandardOutput", "StandardError"}
	// free are the settings that may name a package: they move with the variables, or mean no path.
	free = []string{"Environment", "UnsetEnvironment", "PassEnvironment", "ExecStart", "Description", "Documentation", "SyslogIdentifier"}
)

// stuck finds the settings in force, other than variables and ExecStart=, that name a package: they would stay behind
// when the others move.
func (r *rewriter) stuck(lines []ownLine) []ownLine {
	var out []ownLine
	seen := map[string]bool{}
	for _, l := range lines {
		id := l.Section + "\x00" + l.Key
		if seen[id] || slices.Contains(free, l.Key) || strings.HasPrefix(l.Section, "X-") {
			continue
		}
		seen[id] = true
		for _, found := range inForce(lines, l.Section, l.Key) {
			value, _, ok := r.specs.Expand(r.unit, found.Value)
			if !ok {
				value = found.Value
			}
			if _, bad := r.named(value); bad || len(r.place.spans(strings.TrimLeft(value, prefixes+"~"))) > 0 {
				out = append(out, found)
			}
		}
	}
	return out
}

// stuck is the same for a unit whose variables are about to move.
func (v *view) stuck() error {
	r := &rewriter{place: v.place, unit: v.disk, specs: v.specs}
	return stuckError(r.stuck(ownLines(v.disk, v.path)))
}

// stuckError refuses a unit for them.
func stuckError(found []ownLine) error {
	if len(found) == 0 {
		return nil
	}
	var all []string
	for _, l := range found {
		what := "name a folder there that is in no package"
		if strings.HasPrefix(l.Key, "Exec") {
			what = "let it start " + envProgram + " ${" + serverVariable + "} or another variable that Environment= sets, or what is in no package"
		}
		all = append(all, fmt.Sprintf("%s: %s names a package and would stay behind: %s", l.at(), l.text(), what))
	}
	return fmt.Errorf("%w: %s", ErrRefused, strings.Join(all, "; "))
}
