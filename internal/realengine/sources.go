package realengine

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// source is one line of an apt source list: an archive, one of its suites, and components.
type source struct {
	uri, suite string
	components []string
}

// parseSourceList reads the one-line format of sources.list. Lines that it cannot read are left out, as they
// concern apt and not us.
func parseSourceList(text []byte) []source {
	var sources []source
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		rest, found := strings.CutPrefix(line, "deb")
		if !found || rest == "" || !strings.ContainsAny(rest[:1], " \t") {
			continue
		}
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			_, after, closed := strings.Cut(rest, "]")
			if !closed {
				continue
			}
			rest = after
		}
		if fields := strings.Fields(rest); len(fields) >= 2 {
			sources = append(sources, source{fields[0], fields[1], fields[2:]})
		}
	}
	return sources
}

// parseSourceStanzas reads the deb822 format of *.sources files.
func parseSourceStanzas(text []byte) []source {
	var sources []source
	stanza, last := map[string]string{}, ""
	finish := func() {
		types := strings.Fields(stanza["types"])
		if slices.Contains(types, "deb") && !strings.EqualFold(stanza["enabled"], "no") {
			for _, uri := range strings.Fields(stanza["uris"]) {
				for _, suite := range strings.Fields(stanza["suites"]) {
					sources = append(sources, source{uri, suite, strings.Fields(stanza["components"])})
				}
			}
		}
		clear(stanza)
		last = ""
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			finish()
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				stanza[last] += " " + strings.TrimSpace(line)
			}
		default:
			name, value, found := strings.Cut(line, ":")
			if !found {
				last = ""
				continue
			}
			last = strings.ToLower(strings.TrimSpace(name))
			stanza[last] = strings.TrimSpace(value)
		}
	}
	finish()
	return sources
}

// readSources reads all apt sources below root, the root folder of a machine.
func readSources(root fs.FS) ([]source, error) {
	var sources []source
	if text, err := fs.ReadFile(root, "etc/apt/sources.list"); err == nil {
		sources = parseSourceList(text)
	}
	entries, err := fs.ReadDir(root, "etc/apt/sources.list.d")
	if err != nil && len(sources) == 0 {
		return nil, fmt.Errorf("read apt's sources: %w", err)
	}
	for _, entry := range entries {
		name := path.Join("etc/apt/sources.list.d", entry.Name())
		parse := parseSourceList
		switch path.Ext(name) {
		case ".list":
		case ".sources":
			parse = parseSourceStanzas
		default:
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, fmt.Errorf("read apt's sources: %w", err)
		}
		sources = append(sources, parse(text)...)
	}
	return sources, nil
}

// release reads os-release below root.
func release(root fs.FS) map[string]string {
	text, err := fs.ReadFile(root, "etc/os-release")
	if err != nil {
		text, _ = fs.ReadFile(root, "usr/lib/os-release")
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	return values
}

// archive is a place to fetch from, with what to ask it for.
type archive struct {
	uri        string
	suites     []string // newest first
	components []string
	keyrings   []string // globs of trusted keys on the machine
	debian     bool     // whether the keys that we bring count too
}

// archives returns the archives to try, best first: mirror if it is not empty, else the main archives that the
// machine below root itself uses.
func archives(root fs.FS, mirror string) ([]archive, error) {
	rel := release(root)
	isUbuntu := rel["ID"] == "ubuntu" || strings.Contains(" "+rel["ID_LIKE"]+" ", " ubuntu ")
	if mirror != "" {
		return []archive{debianArchive(mirror, rel)}, nil
	}
	sources, err := readSources(root)
	if err != nil {
		return nil, err
	}
	newArchive := debianArchive
	if isUbuntu {
		newArchive = func(uri string, rel map[string]string) archive { return ubuntuArchive(root, uri, rel) }
	}
	// The archive's own suite names tell it from those of third parties; whichever archive the name was
	// borrowed by is refused later, as its signature is not by the archive's keys.
	own := func(s source) bool {
		codename := rel["VERSION_CODENAME"]
		if isUbuntu && rel["UBUNTU_CODENAME"] != "" {
			codename = rel["UBUNTU_CODENAME"]
		}
		names := []string{codename, "stable", "oldstable", "testing", "unstable", "sid", "devel"}
		return s.suite != "" && slices.Contains(names, s.suite) && slices.Contains(s.components, "main")
	}
	var found []archive
	seen := map[string]bool{}
	for _, s := range sources {
		uri := strings.TrimRight(s.uri, "/")
		if own(s) && !seen[uri] {
			seen[uri] = true
			found = append(found, newArchive(uri, rel))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("find this machine's archive: none of its %d apt sources is the main archive of %s",
			len(sources), firstOf(rel["PRETTY_NAME"], rel["ID"], "this distribution"))
	}
	return found, nil
}

func debianArchive(uri string, rel map[string]string) archive {
	suites := []string{"sid", "testing", "stable-backports", "stable"}
	if name := rel["VERSION_CODENAME"]; rel["ID"] == "debian" && name != "" && name != "sid" {
		suites = append(suites, name+"-backports", name)
	}
	return archive{
		uri: uri, suites: suites, components: []string{"main"}, debian: true,
		keyrings: []string{"debian-archive-keyring.gpg", "debian-archive-keyring.pgp"},
	}
}

func ubuntuArchive(root fs.FS, uri string, rel map[string]string) archive {
	suites := []string{"devel"}
	// Every release that the machine has heard of, newest first, down to its own.
	table, _ := fs.ReadFile(root, "usr/share/distro-info/ubuntu.csv")
	known := map[string]string{} // series to release date
	for line := range strings.Lines(string(table)) {
		if f := strings.Split(strings.TrimSpace(line), ","); len(f) >= 5 && strings.HasPrefix(f[4], "20") {
			known[f[2]] = f[4]
		}
	}
	own := firstOf(rel["UBUNTU_CODENAME"], rel["VERSION_CODENAME"])
	names := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return strings.Compare(known[b], known[a])
	})
	if len(names) == 0 {
		names = []string{"resolute", own}
	}
	for _, name := range names {
		if name != "" && known[name] >= known[own] && !slices.Contains(suites, name) {
			suites = append(suites, name)
		}
	}
	return archive{
		uri: uri, suites: suites, components: []string{"main", "universe"},
		keyrings: []string{"ubuntu-archive-keyring.gpg", "ubuntu-archive-keyring.pgp"},
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
