package systemd

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// unitSet is a generated unit: everything that its files say about the environment.
type unitSet struct {
	name     string            // of the unit that is started
	fragment string            // file name of the unit file
	unit     string            // its bytes
	dropIns  map[string]string // by path below the unit folder
	envFiles map[string]string // by file name in the folder of environment files
	links    map[string]string // other names, and what they are links to
}

// generator writes unit files that are hard to read, from a seed.
type generator struct {
	*rand.Rand
	envDir string // of the environment files
	noter  string // the program that notes what it gets
	home   string // what %h stands for
	inPath bool   // the program is also in a folder in which systemd looks for programs
}

var (
	keyPool   = []string{"A", "B", "C", "D", "E_1", "_F", "LD_LIBRARY_PATH", "ONEBIT_LLAMA_SERVER"}
	badKeys   = []string{"my.key", "1A", "a-b", "é", "", "export"}
	endings   = []string{"\n", "\n", "\n", "\n", "\n", "\r\n", "\r", "\n\r", "\x00"}
	valueBits = []string{"x", "word", " ", "  ", "=", ",", ";", "#", "$HOME", "${A}", "'", "\"", "é", "漢", "😀",
		"/opt/a", ":", "~", "\t", "%%", "%%h", "%", "%_", "*", "|", "&", "!"}
	escapeBits    = []string{`\\`, `\"`, `\'`, `\s`, `\t`, `\n`, `\x41`, `\x25h`, `\u00e9`, `\U0001f600`, `\101`, `\a`}
	badBits       = []string{`\q`, `\x4`, `\xg1`, `\400`, `\000`, `\x00`, `\ud800`, `\ufffe`, `\xff`, `\7`, "%4", "%9x"}
	specifierBits = []string{"%h", "%u", "%U", "%t", "%n", "%N", "%p", "%P", "%i", "%I", "%j", "%J", "%f", "%y", "%Y",
		"%E", "%S", "%C", "%L", "%h", "%n", "%i", "%p", "%I", "%I", "%I", "%b", "%H", "%k"}
	instances = []string{"one", `a\x2db`, "gpu-0", "x-y-z", `weird\x`, "-"}
)

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// value makes the text of a value as it may stand in a file.
func (g *generator) value() string {
	var out strings.Builder
	for range g.IntN(6) {
		switch n := g.IntN(100); {
		case n < 60:
			out.WriteString(pick(g, valueBits))
		case n < 80:
			out.WriteString(pick(g, escapeBits))
		case n < 97:
			out.WriteString(pick(g, specifierBits))
		default:
			out.WriteString(pick(g, badBits))
		}
	}
	return out.String()
}

func (g *generator) key() string {
	if g.chance(6) {
		return pick(g, badKeys)
	}
	return pick(g, keyPool)
}

// word makes one assignment in one of the spellings that people use.
func (g *generator) word() string {
	key, value := g.key(), g.value()
	switch g.IntN(7) {
	case 0:
		return key + "=" + value
	case 1:
		return "'" + key + "=" + strings.ReplaceAll(value, "'", `\'`) + "'"
	case 2:
		return key + `="` + strings.ReplaceAll(value, `"`, `\"`) + `"`
	case 3:
		return key + "='" + strings.ReplaceAll(value, "'", "") + "'tail"
	case 4:
		return key
	default:
		return `"` + key + "=" + strings.ReplaceAll(value, `"`, `\"`) + `"`
	}
}

// line makes one line, or several that belong together, of a [Service] section.
func (g *generator) line() string {
	var words []string
	for range 1 + g.IntN(3) {
		words = append(words, g.word())
	}
	gap := pick(g, []string{" ", " ", " ", "\t", "  ", " \\\n", " \\\n# a comment \\\n", " \\\n   ; another\n\t", "\\\r\n "})
	switch n := g.IntN(100); {
	case n < 60:
		return pick(g, []string{"", "", " ", "\t"}) + "Environment" + pick(g, []string{"=", "=", " = ", "=\t"}) + strings.Join(words, gap)
	case n < 66:
		return "Environment=" + pick(g, []string{"", " ", "\t "})
	case n < 74:
		return "UnsetEnvironment=" + strings.Join(append(words, pick(g, keyPool)), " ")
	case n < 76:
		return "UnsetEnvironment="
	case n < 79:
		return "PassEnvironment=" + pick(g, keyPool) + " " + pick(g, []string{"PATH", "NOT_THERE", "a-b", `"C"`, "'D", `\A`})
	case n < 80:
		return "PassEnvironment="
	case n < 83:
		return pick(g, []string{"# comment", "; comment \\", "#\\", "   # indented", ""})
	case n < 86:
		return pick(g, []string{"[Unit]\nDescription=x\n[Service]", "[X-Mine]\nEnvironment=A=lost\n[Service]",
			"[Service ]\nEnvironment=A=lost\n[Service]", "[service]\nEnvironment=A=lost\n[Service]"})
	case n < 88:
		return pick(g, []string{"environment=A=lost", "ENVIRONMENT=B=lost", "no equals sign", "=A=lost", "Environment A=lost", "Environmentx=A=lost"})
	default:
		return "EnvironmentFile=" + g.envFileName()
	}
}

func (g *generator) envFileName() string {
	return pick(g, []string{
		g.envDir + "/one", g.envDir + "/one", g.envDir + "/two", "-" + g.envDir + "/two", "-" + g.envDir + "/missing",
		g.envDir + "/t*", g.envDir + "/[!o]*", "-relative", "relative", "", "-" + g.envDir + "/bad", "-" + g.envDir + "/torn", "-" + g.envDir + "/torn", g.envDir + "/torn", g.envDir + "/.h*", "%h/.none",
		g.envDir + "/../" + filepath.Base(g.envDir) + "/two", "-" + g.envDir + "/./..//x", g.envDir + "/[[:alpha:]]wo", g.envDir + "/[]t-]*",
		"-" + g.envDir + "/[[.o.]]n[[:lower:]]", "-" + g.envDir + `/[\t]w[!]a-n]`, "-" + g.envDir + "/[a-z]?[!a-d]/", "-" + g.envDir + "/[n-p]*",
	})
}

// text makes the rest of a unit file.
func (g *generator) text(lines int) string {
	var out strings.Builder
	for range lines {
		out.WriteString(g.line())
		out.WriteString(pick(g, endings))
	}
	return out.String()
}

// envFile makes an environment file.
func (g *generator) envFile() string {
	bits := []string{"x", "two words", "'", "\"", "\\", "\\\\", "\\\"", "\\'", "\\$", "$A", "`", "#", ";", " ", "\t", "\\\n", "=",
		"é", "%h", "\\n", "\\x41", "\x01", "😀", "\\\r\n"}
	var out strings.Builder
	if g.chance(5) {
		out.WriteString("\ufeff")
	}
	for range g.IntN(7) {
		switch n := g.IntN(100); {
		case n < 12:
			out.WriteString(pick(g, []string{"# comment", "; comment", "  # comment", "# A=1 \\ x", "# continued \\", ""}))
		case n < 16:
			out.WriteString(pick(g, []string{"export A=1", "no equals", "=x", "A", "A =  spaced  ", " B= 'x' \"y\" z ", "A=\"open"}))
		default:
			out.WriteString(g.key() + "=")
			for range g.IntN(5) {
				out.WriteString(pick(g, bits))
			}
		}
		out.WriteString(pick(g, []string{"\n", "\n", "\n", "\r\n", "\r", "\n\n"}))
	}
	text := out.String()
	if g.chance(20) {
		text = strings.TrimRight(text, "\r\n")
	}
	return text
}

// tornFile makes an environment file in which versions of systemd see other pairs, for its comments end in a backslash,
// and so may find something that makes them refuse it.
func (g *generator) tornFile() string {
	var out strings.Builder
	for range 1 + g.IntN(3) {
		out.WriteString(g.envFile() + pick(g, []string{"", "\n", "\n"}))
		out.WriteString(pick(g, []string{"# continued \\\n", "; \\\n", "#\\\r\n", "# \\\\\n", "#\\\\\\\n", "# one \\\n# two \\\n"}))
		out.WriteString(pick(g, []string{"A=\"\n", "B='\n", "C=\xff\n", "\xff=1\n", "D=\\\n", "A=\"open", "# \n", ""}))
		out.WriteString(pick(g, []string{"", "", "B=\xff\n", "# \ufffe\n", "# \xff \\\n", "B='\n# \xff\n'\n", "C=2\"\n", "\xff\n"}))
	}
	return out.String()
}

// set makes one unit with everything that belongs to it.
func (g *generator) set(number int) unitSet {
	s := unitSet{dropIns: map[string]string{}, envFiles: map[string]string{}, links: map[string]string{}}
	first := fmt.Sprintf("gen-%d", number)
	stem := first
	if g.chance(30) {
		stem += "-" + pick(g, []string{"x", "-y", "x-y"})
	}
	of := ".service"
	s.name, s.fragment = stem+of, stem+of
	if g.chance(40) {
		of = "@" + pick(g, instances) + of
		s.name, s.fragment = stem+of, stem+"@.service"
	}
	folders := []string{s.name, s.name, s.fragment}
	if stem != first {
		folders = append(folders, first+"-.service", first+"-"+of, first+"-@.service", first+"-.service")
	}
	if g.chance(12) {
		folders = append(folders, s.link(g, first, stem, of)...)
	}
	mark := ""
	if g.chance(10) {
		mark = "\ufeff"
	}
	kind := "Type=oneshot\n"
	if g.chance(15) {
		kind = pick(g, []string{"", "Type=simple\n", "Type=exec\n", "Type=exec\nType=oneshoot\n"})
	}
	s.unit = mark + "[Service]\n" + kind + "ExecStart=" + g.command() + "\n" + g.text(g.IntN(4)) +
		"\n[Unit]\nStartLimitBurst=1\n" // whatever Restart= says
	for range g.IntN(4) {
		folder := pick(g, folders)
		head := "[Service]\n"
		if g.chance(4) {
			head = pick(g, []string{"", "[Service\n", "[Unit]\n", "\ufeff# comment\n[Service]\n", "[Ser\"vice]\n"})
		}
		text := head + g.text(1+g.IntN(3))
		if g.chance(25) {
			text += g.commandLines() + "\n" + g.text(g.IntN(2))
		}
		if g.chance(3) {
			text += "Environment=A=\xff\xfe\nEnvironment=B=after\n"
		}
		if g.chance(5) {
			text = ""
		}
		s.dropIns[folder+".d/"+pick(g, []string{"10-a", "90-b", "hrx", "override", "Z"})+".conf"] = text
	}
	for _, name := range []string{"one", "two", "three", ".hidden"} {
		if name == "one" || g.chance(80) {
			s.envFiles[name] = g.envFile()
		}
	}
	if g.chance(30) {
		s.envFiles["torn"] = g.tornFile()
	}
	if g.chance(20) {
		s.envFiles["bad"] = g.envFile() + pick(g, []string{"A=\xff\n", "A=x\x00y\n", "\ufffe=1\n"})
	}
	return s
}

// link gives the unit other names, and returns the folders of one of them. (Of those of two systemd
// takes one or the other first.)
func (s unitSet) link(g *generator, first, stem, of string) []string {
	alias, at := first+"b", of
	if of != ".service" && g.chance(70) {
		at = "@.service" // from template to template
	}
	target := stem + at
	if of != at || g.chance(50) {
		target = s.fragment
	}
	s.links[alias+at] = target
	if g.chance(50) { // and a link to the link
		s.links[first+"c"+at] = alias + at
		alias = first + "c"
	}
	return []string{alias + at, alias + of, alias + at}
}

// hard says whether the set has a reset, a quote or a specifier, which plain readers get wrong.
func (s unitSet) hard() bool {
	text := s.text()
	return strings.ContainsAny(text, "\"'%") || strings.Contains(text, "=\n")
}

// text is that of all files.
func (s unitSet) text() string {
	text := s.unit
	for _, more := range s.dropIns {
		text += more
	}
	return text
}

// again says whether systemd may start the unit once more after it has ended well, which its start limit makes a failure.
func (s unitSet) again() bool {
	return strings.Contains(s.text(), "Restart=always") || strings.Contains(s.text(), "Restart=on-success")
}

// prefixed says whether it has drop-ins of a dash prefix of its name.
func (s unitSet) prefixed() bool {
	for name := range s.dropIns {
		if strings.Contains(name, "-.service.d/") || strings.Contains(name, "-@") {
			return true
		}
	}
	return false
}
