package cmd

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager"
)

// isFile tells an archive's path from a package's name: it names something that exists, or looks like a path.
func isFile(what string) bool {
	if strings.ContainsRune(what, os.PathSeparator) || strings.HasSuffix(what, ".zst") {
		return true
	}
	info, err := os.Stat(what)
	return err == nil && info.Mode().IsRegular()
}

func printManifest(w io.Writer, m *packager.Manifest, digest string) error {
	rows := [][]string{
		{"package", m.Name()},
		{"version", or(strings.TrimSpace(m.Version+"  "+tagNote(m)), "-")},
		{"digest", digest},
		{"files", fmt.Sprintf("%d, %s", regularFiles(m), ui.Size(m.Size()))},
	}
	for _, c := range m.Components {
		how := ""
		switch {
		case c.Declared:
			how = "  (declared)"
		case c.Dirty:
			how = "  (with changes that no commit holds)"
		}
		rows = append(rows, []string{"pin", c.Name + " " + c.Commit + how})
	}
	entries := make([]string, 0, len(m.EntryPoints))
	for name := range m.EntryPoints {
		entries = append(entries, name)
	}
	sort.Strings(entries)
	for _, name := range entries {
		rows = append(rows, []string{"entry point", name + " = " + m.EntryPoints[name]})
	}
	if len(m.FrontDoor) > 0 {
		rows = append(rows, []string{"front door", strings.Join(m.FrontDoor, " ")})
	}
	for _, f := range m.Fixes {
		rows = append(rows, []string{"fix", f.ID + " " + carriedWord(f.Carried) + ": " + f.How + "  (" + f.Title + ")"})
		if f.Off != "" {
			rows = append(rows, []string{"", "  " + f.Off + " turns it off"})
		}
	}
	for _, row := range [][]string{{"machine", m.Machine}, {"GPU targets", join(m.GPUTargets)}, {"glibc", m.Glibc}} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	for _, l := range m.HostLibraries {
		where := ""
		if len(l.Dirs) > 0 {
			where = ", looked for in " + join(l.Dirs)
		}
		rows = append(rows, []string{"host library", l.Name + "  (for " + l.NeededBy + where + ")"})
	}
	for _, r := range m.Requires {
		need := r.Kind + " " + r.Name
		if r.Value != "" {
			need += " = " + r.Value
		}
		rows = append(rows, []string{"host needs", need})
	}
	return ui.Table(w, rows)
}

func tagNote(m *packager.Manifest) string {
	if m.Tag == "" {
		return ""
	}
	return "(tag " + m.Tag + ")"
}
