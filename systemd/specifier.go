package systemd

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	godbus "github.com/godbus/dbus/v5"
)

// Specifiers holds what the letter after a percent sign stands for, as far as it is known: 'h'
// for %h. A letter of systemd's that is not in it makes a value unsure. Manager.Specifiers
// fills in what holds for all units of a manager; ReadSettings adds what holds for one.
type Specifiers map[byte]string

// badSpecifier is the answer of a lookup for a unit that the specifier cannot stand for.
const badSpecifier = "\x00"

// forUnit adds the specifiers that come from the name of a unit and the place of its file.
func (s Specifiers) forUnit(id, fragment string) Specifiers {
	all := maps.Clone(s)
	if all == nil {
		all = Specifiers{}
	}
	stem := strings.TrimSuffix(id, path.Ext(id))
	prefix, instance, _ := strings.Cut(stem, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	all['n'], all['N'], all['p'], all['i'], all['j'] = id, stem, prefix, instance, last
	all['P'], all['I'], all['J'] = unescapeName(prefix), unescapeName(instance), unescapeName(last)
	all['f'] = unescapePath(prefix)
	if instance != "" {
		all['f'] = unescapePath(instance)
	}
	if fragment != "" {
		all['y'], all['Y'] = fragment, path.Dir(fragment)
	}
	return all
}

// unescapeName undoes the escaping of unit names: "-" is "/" and \xNN a byte.
func unescapeName(name string) string {
	var out []byte
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '-':
			out = append(out, '/')
		case '\\':
			if i+3 >= len(name) || name[i+1] != 'x' {
				return badSpecifier
			}
			value, ok := digits(name[i+2:], 2, 16)
			if !ok {
				return badSpecifier
			}
			out = append(out, byte(value))
			i += 3
		default:
			out = append(out, name[i])
		}
	}
	return string(out)
}

// unescapePath undoes the escaping of a path in a unit name.
func unescapePath(name string) string {
	if name == "-" {
		return "/"
	}
	inner := unescapeName(name)
	if inner == badSpecifier || inner == "" || path.Clean("/"+inner) != "/"+inner {
		return badSpecifier
	}
	return "/" + inner
}

// known are the letters that some systemd up to 258 gives a meaning to.
const known = "aAbBcCdDEfghGHiIjJlLmMnNopPqrRsStTuUvVwWyY"

// expand replaces the specifiers of a text. unsure names the first one whose meaning is not
// known. When ok is false systemd drops the text: it has no such specifier, or not for this unit.
func (s Specifiers) expand(text string) (value, unsure string, ok bool) {
	if strings.IndexByte(text, '%') < 0 {
		return text, "", true
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' || i+1 == len(text) { // a lone % at the end stays
			out.WriteByte(text[i])
			continue
		}
		i++
		c := text[i]
		meaning, have := s[c]
		switch {
		case c == '%':
			out.WriteByte('%')
		case have && strings.Contains(meaning, badSpecifier):
			return "", "", false
		case have:
			out.WriteString(meaning)
		case strings.IndexByte(known, c) >= 0:
			unsure = firstOf(unsure, fmt.Sprintf("what %%%c stands for is not known here", c))
			out.WriteString(text[i-1 : i+1])
		case c >= '0' && c <= '9':
			return "", "", false
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			unsure = firstOf(unsure, fmt.Sprintf("systemd may not know %%%c, and then refuses the text", c))
			out.WriteString(text[i-1 : i+1])
		default: // no letter: no specifier
			out.WriteString(text[i-1 : i+1])
		}
	}
	return out.String(), unsure, true
}

// doubtful says whether a text has a specifier that not every systemd knows: one that does not
// refuses the text.
func (s Specifiers) doubtful(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '%' {
			continue
		}
		i++
		_, have := s[text[i]]
		letter := text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' && text[i] <= 'Z'
		if letter && !have && strings.IndexByte(known, text[i]) < 0 {
			return true
		}
	}
	return false
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Specifiers tells what the specifiers stand for that do not depend on a unit: user, home and
// the folders of systemd's. For a user manager they come from its own environment, which may say
// something else than ours does.
func (m *Manager) Specifiers(ctx context.Context) (Specifiers, error) {
	version := majorVersion(get[string](m.about, "Version"))
	if m.Scope() == ScopeSystem {
		return systemSpecifiers(), nil
	}
	return userSpecifiers(m.uid, version, environmentMap(m.about)), nil
}

// Environment is what the manager hands to every process that it starts, before the unit's own
// files: see Settings.Argv.
func (m *Manager) Environment(ctx context.Context) (map[string]string, error) {
	all, err := m.all(ctx, managerPath, managerInterface)
	if err != nil {
		return nil, fmt.Errorf("read the environment of the %s manager: %w", m.Scope(), err)
	}
	return environmentMap(all), nil
}

func environmentMap(all map[string]godbus.Variant) map[string]string {
	environment := map[string]string{}
	for _, pair := range get[[]string](all, "Environment") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			environment[key] = value
		}
	}
	return environment
}

// majorVersion reads the 252 of "252.39-1~deb12u2" or "v257"; 0 when there is none.
func majorVersion(version string) int {
	version = strings.TrimPrefix(version, "v")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		version = version[:end]
	}
	number, _ := strconv.Atoi(version)
	return number
}

func systemSpecifiers() Specifiers {
	return Specifiers{
		'u': "root", 'U': "0", 'g': "root", 'G': "0", 'h': "/root",
		't': "/run", 'E': "/etc", 'S': "/var/lib", 'C': "/var/cache", 'L': "/var/log",
	}
}

// userSpecifiers follows systemd's sd-path for a user manager. State and logs moved in 254.
func userSpecifiers(uid, version int, environment map[string]string) Specifiers {
	s := Specifiers{'U': strconv.Itoa(uid)}
	absolute := func(letter byte, value string) {
		if path.IsAbs(value) {
			s[letter] = value
		}
	}
	if user := environment["USER"]; user != "" {
		s['u'] = user
	}
	home := environment["HOME"]
	absolute('h', home)
	absolute('t', environment["XDG_RUNTIME_DIR"])
	under := func(variable, fallback string) string {
		if value := environment[variable]; path.IsAbs(value) {
			return path.Clean(value)
		}
		if !path.IsAbs(home) {
			return ""
		}
		return path.Join(home, fallback)
	}
	config := under("XDG_CONFIG_HOME", ".config")
	absolute('E', config)
	absolute('C', under("XDG_CACHE_HOME", ".cache"))
	switch {
	case version >= 254:
		state := under("XDG_STATE_HOME", ".local/state")
		absolute('S', state)
		if state != "" {
			absolute('L', path.Join(state, "log"))
		}
	case version > 0:
		absolute('S', config)
		if config != "" {
			absolute('L', path.Join(config, "log"))
		}
	}
	return s
}
