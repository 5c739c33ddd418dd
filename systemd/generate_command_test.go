package systemd

import (
	"path/filepath"
	"strings"
)

var (
	argumentBits = []string{"x", "--port", "word", "=", ",", ";", "#", "'", "\"", "é", "😀", "/opt/a", ":", "~", "*", "|", "&", "!",
		"%%", "%%h", "%", "%_", "\\;", "-", "@", " "}
	variableBits = []string{"$A", "${A}", "${B}", "${C}", "$B", "$C", "$D", "${_F}", "${E_1}", "$$", "$$A", "$${A}", "$", "${",
		"${A", "${}", "${A:-x}", "${NOT_SET}", "$NOT_SET", "$A$B", "$1", "$A ${B}", "x$A", "$a-b", "$;", "${A}}"}
	unknownEscapes = []string{`\q`, `\d+`, `\.`, `\$A`, `\x4`, `\400`, `\000`}
	prefixes       = []string{"", "", "", "", "-", ":", "@", "+", "!", "!!", "-:", "@-", ":@", "-@:", "+-", "!-!"}
	badCommands    = []string{"relative/path", "\"\"", "-", "@", "/", "/bin/", "/bin/true \"open", "/bin/true %4", "/bin/%9true",
		"'/bin/true", "/bin/tr\\x01ue", "--/bin/true", "+!/bin/true", "/bin/true 'a' \"b", "@/bin/true", "-/bin/true %4x",
		"-relative/path", "-/bin/true 'open", "-:relative/path", "/bin/true ; relative/path", "../bin/true", ".", "-@%4"}
	otherCommands = []string{"-/nowhere/program a", "/bin/true", "true", "-@true $A", ":true $A", "'/bin/true' ; true", "/bin//./true x",
		"; true ;", "\";\" /bin/true", "true ; ; true"}
)

// argument makes one argument of a command as it may stand in a file.
func (g *generator) argument() string {
	switch n := g.IntN(100); {
	case n < 25:
		return pick(g, variableBits)
	case n < 33:
		return pick(g, []string{`"$A"`, `'$B'`, `"${A}"`, `'x${B}y'`, `"$$"`, `'$C '`, `"$A b"`, `\x24A`, `"\x24{B}"`, `%%$A`})
	case n < 37:
		return pick(g, []string{";", `\;`, `";"`, `\\;`, `;x`, `x;`, `''`, `""`})
	}
	var out strings.Builder
	for range 1 + g.IntN(4) {
		switch n := g.IntN(100); {
		case n < 50:
			out.WriteString(pick(g, argumentBits))
		case n < 65:
			out.WriteString(pick(g, variableBits))
		case n < 78:
			out.WriteString(pick(g, escapeBits))
		case n < 90:
			out.WriteString(pick(g, specifierBits))
		case n < 98:
			out.WriteString(pick(g, unknownEscapes))
		default:
			out.WriteString("%4")
		}
	}
	text := out.String()
	switch g.IntN(4) {
	case 0:
		return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
	case 1:
		return "'" + strings.ReplaceAll(text, "'", `\'`) + "'"
	}
	if g.chance(85) { // else a quote stays open as often as not
		text = strings.NewReplacer(`"`, "", "'", "").Replace(text)
	}
	return text
}

// program spells the path of the program that notes what it gets.
func (g *generator) program() string {
	dir, name := filepath.Split(g.noter)
	below, inHome := strings.CutPrefix(g.noter, g.home+"/")
	switch n := g.IntN(14); {
	case n == 0:
		return `"` + g.noter + `"`
	case n == 1:
		return "'" + dir + "'" + name
	case n == 2:
		return dir + "/./" + name
	case n == 3:
		return strings.ReplaceAll(g.noter, "/", "//")
	case n == 4:
		return `\x2f` + g.noter[1:]
	case n < 7 && inHome:
		return "%h/" + below
	case n < 9 && g.inPath:
		return name
	}
	return g.noter
}

// command makes the right side of an ExecStart=.
func (g *generator) command() string {
	switch n := g.IntN(100); {
	case n < 4:
		return pick(g, badCommands)
	case n < 10:
		return pick(g, otherCommands)
	}
	prefix := pick(g, prefixes)
	words := []string{prefix + g.program()}
	if strings.HasPrefix(words[0], prefix+`"`) && g.chance(50) {
		words[0] = `"` + prefix + words[0][len(prefix)+1:]
	}
	if strings.Contains(prefix, "@") && g.chance(95) {
		words = append(words, pick(g, []string{"name", `"a name"`, "$A", "${A}x", "%n", "''", "-sh"}))
	}
	for range g.IntN(5) {
		words = append(words, g.argument())
	}
	gap := pick(g, []string{" ", " ", " ", "\t", "  ", " \\\n", " \\\n# a comment \\\n", " \\\n   ; another\n\t", "\\\r\n "})
	text := strings.Join(words, gap)
	if g.chance(6) {
		text += pick(g, []string{" ; ", " ;", " ;\t-", " ; ; "}) + g.program() + " " + g.argument()
	}
	return text
}

// commandLines makes the lines that change the command of a unit.
func (g *generator) commandLines() string {
	switch n := g.IntN(100); {
	case n < 55:
		return "ExecStart=\nExecStart=" + g.command()
	case n < 68:
		return "ExecStart=" + g.command()
	case n < 73:
		return "ExecStart=" + pick(g, []string{"", " "})
	case n < 80:
		return "ExecReload=" + g.command()
	case n < 84:
		return "Type=" + pick(g, []string{"oneshot", "exec", "Oneshot", "", "nonsense"})
	case n < 86:
		return "Restart=" + pick(g, []string{"no", "always", "on-success", "Always", "on-failure"})
	case n < 91:
		return pick(g, []string{"WorkingDirectory=/", "WorkingDirectory=relative", "WorkingDirectory=-relative", "WorkingDirectory=%4",
			"WorkingDirectory=~", "WorkingDirectory=", "User=%4x", "Group=", "WorkingDirectory=//./", "WorkingDirectory=/../",
			"DynamicUser=maybe", "DynamicUser=", "RootDirectory=rel", "RootDirectory=", "RootImage=%4", "RootVerity=a/b",
			"PIDFile=x/../y", "PIDFile=x", "PIDFile=%4", "SupplementaryGroups=%4"})
	}
	return "ExecStart=\n" + pick(g, []string{"# a comment \\\n", "", "[Unit]\nDescription=x\n[Service]\n"}) + "ExecStart = " + g.command()
}
