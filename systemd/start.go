package systemd

import (
	"fmt"
	"path"
	"strings"
)

// StartCommand is one command of an ExecStart=, as far as the files tell.
type StartCommand struct {
	File   string
	Line   int
	Value  string    // the right side of the whole line, of which the command may be a part
	Words  []RawWord // of the command as written, the first one with the prefix
	Prefix string    // those of "@", "-", ":", "+", "!" that it has, in order
	// Path is the program: with specifiers expanded, never with variables. A name without a
	// slash is looked up: see Candidates.
	Path string
	// Argv is what the process gets, its own name foremost, before variables are replaced:
	// see Settings.Argv.
	Argv []string
	// Unsure says why Path or Argv are not certain, or even that there is the command; "" when
	// they are.
	Unsure string

	doubt string // why systemd may take the command for an error
}

// NoVariables says whether the prefix turns the replacing of variables off.
func (c StartCommand) NoVariables() bool { return strings.Contains(c.Prefix, ":") }

// Candidates lists where systemd looks for the program, in order: the first one that is there
// and can be executed is taken. The folders are compiled into systemd; some systems leave the
// sbin ones and the last two out, whose programs are then also in the others.
func (c StartCommand) Candidates() []string {
	if path.IsAbs(c.Path) {
		return []string{c.Path}
	}
	var all []string
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		all = append(all, path.Join(dir, c.Path))
	}
	return all
}

// The lengths that systemd allows, in bytes.
const (
	maxPath = 4095
	maxName = 255
)

// commandError is why systemd passes over the rest of a command line, or of the whole file.
type commandError struct {
	what  string
	fatal bool // the reading of the file ends; the unit does not start if it is the unit file
}

// parseCommands reads the value of an ExecStart= or its like as systemd's config_parse_exec does.
// The commands of a line that stand before a bad one count.
func parseCommands(value string, specifiers Specifiers) (commands []StartCommand, bad *commandError) {
	split, open, err := splitCommands(value)
	for i, words := range split {
		c := StartCommand{Value: value, Words: words}
		bad := c.resolve(specifiers)
		if bad == nil && open && i == len(split)-1 {
			bad = &commandError{what: err.Error(), fatal: true}
		}
		if bad != nil {
			bad.fatal = bad.fatal && !strings.Contains(c.Prefix, "-")
			return commands, bad
		}
		commands = append(commands, c)
	}
	if err != nil {
		return commands, &commandError{what: err.Error()}
	}
	return commands, nil
}

// resolve fills in what follows from the words of a command.
func (c *StartCommand) resolve(specifiers Specifiers) *commandError {
	expand := func(text string) (string, *commandError) {
		value, unsure, ok := specifiers.expand(text)
		if !ok {
			return "", &commandError{what: "a % that should be doubled: " + text, fatal: true}
		}
		if len(value) > maxPath {
			unsure = firstOf(unsure, "systemd before 251 takes no word longer than 4095 bytes")
			c.doubt = firstOf(c.doubt, unsure)
		}
		if specifiers.doubtful(text) {
			c.doubt = firstOf(c.doubt, unsure)
		}
		c.Unsure = firstOf(c.Unsure, unsure)
		return value, nil
	}
	var rest string
	c.Prefix, rest = cutPrefixes(c.Words[0].Text)
	file, bad := expand(rest)
	if bad != nil {
		return bad
	}
	switch what := badProgram(file); {
	case c.Unsure != "":
	case strings.HasPrefix(file, "|"):
		c.Unsure = "systemd before 258 does not know the prefix |"
		c.doubt = c.Unsure
	case what != "":
		return &commandError{what: what, fatal: true}
	case strings.HasSuffix(file, "/."), strings.HasSuffix(file, "/.."):
		c.Unsure = "a newer systemd refuses a program that is a folder"
		c.doubt = c.Unsure
	}
	c.Path = simplify(file)
	if !strings.Contains(c.Prefix, "@") {
		c.Argv = append(c.Argv, file)
	}
	for _, word := range c.Words[1:] {
		value, bad := word.Text, (*commandError)(nil)
		if word.Raw != `\;` {
			value, bad = expand(word.Text)
		}
		if bad != nil {
			return bad
		}
		c.Argv = append(c.Argv, value)
	}
	if len(c.Argv) == 0 {
		return &commandError{what: "no name for the process after @", fatal: true}
	}
	return nil
}

// cutPrefixes takes the prefixes off a program. Each counts once; of "+", "!" and "!!" only one.
func cutPrefixes(program string) (prefix, rest string) {
	for i := range len(program) {
		had := program[:i]
		privileged := strings.Contains(had, "+") || strings.Count(had, "!") > 1
		switch c := program[i]; {
		case in("-@:", c) && strings.IndexByte(had, c) < 0:
		case c == '+' && !privileged && !strings.Contains(had, "!"):
		case c == '!' && !privileged:
		default:
			return had, program[i:]
		}
	}
	return program, ""
}

// badProgram says what is wrong with the path of a program, "" when systemd takes it.
func badProgram(file string) string {
	switch {
	case file == "":
		return "no program in the command"
	case strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || strings.ContainsRune("\"'\\\x7f", r) }):
		return fmt.Sprintf("bad characters in the program %q", file)
	case strings.HasSuffix(file, "/"):
		return fmt.Sprintf("the program %q is a folder", file)
	case len(file) > maxPath:
		return "the path of the program is too long"
	case !path.IsAbs(file) && strings.Contains(file, "/"), file == ".", file == "..":
		return fmt.Sprintf("the program %q is neither a name nor an absolute path", file)
	}
	for part := range strings.SplitSeq(file, "/") {
		if len(part) > maxName {
			return "the path of the program is too long"
		}
	}
	return ""
}

// simplify is systemd's path_simplify: it takes out double slashes and "." but not "..".
func simplify(file string) string {
	if !strings.Contains(file, "/") {
		return file
	}
	var out strings.Builder
	for part := range strings.SplitSeq(file, "/") {
		if part != "" && part != "." {
			out.WriteString("/" + part)
		}
	}
	return out.String()
}
