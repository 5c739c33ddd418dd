package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// envProgram runs a program that a variable names: ExecStart=${VARIABLE} never works.
const envProgram = "/usr/bin/env"

// rewriter turns the paths into packages that stand in a unit's commands into variables.
type rewriter struct {
	place   *place
	unit    *systemd.Unit
	specs   systemd.Specifiers
	taken   []string // names that some line of the unit touches
	reuse   binding  // variables of the unit that hold a path into a package
	folders []string // of the packages of this host

	vars binding // what the commands name, in the order in which it was found
}

// line rewrites one value of ExecStart=. What names no package stays byte for byte as it was; changed tells whether
// anything did not. The error wraps ErrRefused.
func (r *rewriter) line(value string) (out string, changed bool, err error) {
	commands, err := systemd.SplitCommands(value)
	if err != nil {
		return "", false, fmt.Errorf("%w: it cannot be told how systemd reads %q: %w", ErrRefused, value, err)
	}
	var lines []string
	for _, words := range commands {
		moved, text, err := r.command(words)
		if err != nil {
			return "", false, err
		}
		changed = changed || moved
		lines = append(lines, text)
	}
	if !changed {
		return value, false, nil
	}
	return strings.Join(lines, " ; "), true, nil
}

// prefixes are what may stand before the program of a command.
const prefixes = "@-:+!|"

// command rewrites one command.
func (r *rewriter) command(words []systemd.RawWord) (changed bool, out string, err error) {
	raw := make([]string, len(words))
	prefix := words[0].Text[:len(words[0].Text)-len(strings.TrimLeft(words[0].Text, prefixes))]
	for i, word := range words {
		text := word.Text
		if i == 0 {
			text = text[len(prefix):]
		}
		literal, found, err := r.word(text, hintOf(words, i))
		switch {
		case err != nil:
			return false, "", err
		case found == 0:
			raw[i] = word.Raw
			continue
		case i+1 < len(words) && words[i+1].Text == "(deleted)":
			return false, "", fmt.Errorf("%w: %q is followed by (deleted), which the kernel adds to the name of a file that is gone: take it out and name a file that is there",
				ErrRefused, text)
		}
		changed = true
		raw[i] = literal
		if i == 0 {
			if err := r.mayMove(prefix, text, literal); err != nil {
				return false, "", err
			}
			raw[i] = prefix + envProgram + " " + literal
		}
	}
	switch {
	case !changed:
	case strings.Contains(prefix, ":"):
		err = fmt.Errorf("%w: the prefix \":\" of %s turns variables off, so that its paths cannot become any: take it away, doubling every $ of the line",
			ErrRefused, words[0].Raw)
	case strings.Contains(prefix, "|"):
		err = fmt.Errorf("%w: the prefix \"|\" of %s hands the line to a shell: write it as /bin/sh -c '…'", ErrRefused, words[0].Raw)
	}
	return changed, strings.Join(raw, " "), err
}

// mayMove refuses a program that cannot be started by way of env.
func (r *rewriter) mayMove(prefix, text, literal string) error {
	switch {
	case !strings.HasPrefix(literal, "${") || strings.Count(literal, "${") != 1 || !strings.HasSuffix(literal, "}"):
		return fmt.Errorf("%w: the program %s is no plain path into a package", ErrRefused, text)
	case strings.Contains(prefix, "@"):
		return fmt.Errorf("%w: the prefix \"@\" of %s gives the program another name, which env cannot: take it away, and the word after the program with it",
			ErrRefused, text)
	case strings.Contains(r.value(literal), "="):
		return fmt.Errorf("%w: the path of %s has a \"=\" in it, which env takes for a variable", ErrRefused, text)
	}
	info, err := os.Stat(r.value(literal))
	switch {
	case err != nil:
		return fmt.Errorf("%w: the unit starts what is not there: %w", ErrRefused, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: the unit starts %s, which is no program", ErrRefused, text)
	}
	return nil
}

// word rewrites one word; found counts the paths that became variables. A word that is one variable comes without
// quotes.
func (r *rewriter) word(text, hint string) (out string, found int, err error) {
	value, unsure, ok := r.specs.Expand(r.unit, text)
	if !ok || len(value) > 1 && value[0] == '$' && value[1] != '{' && value[1] != '$' {
		return "", 0, nil // systemd refuses it, or takes all of it for the name of a variable
	}
	var b, left strings.Builder
	at := 0
	for _, s := range r.place.spans(value) {
		literal, path := value[at:s.from], value[s.from:s.to]
		if open := strings.LastIndex(value[:s.from], "${"); open >= 0 && !strings.Contains(value[open:s.from], "}") {
			return "", 0, fmt.Errorf("%w: a package's path stands inside of ${…} in %q", ErrRefused, text)
		}
		if strings.Contains(path, "$") {
			return "", 0, fmt.Errorf("%w: the path %s has a dollar sign in it", ErrRefused, path)
		}
		if trimmed := strings.TrimRight(literal, "$"); (len(literal)-len(trimmed))%2 == 1 {
			literal += "$" // a lone one would join the variable's
		}
		b.WriteString(literal + "${" + r.variable(path, hint, !strings.HasPrefix(hint, argumentPrefix) && !afterOption(value[:s.from])) + "}")
		left.WriteString(value[at:s.from] + " ")
		at, found = s.to, found+1
	}
	b.WriteString(value[at:])
	left.WriteString(value[at:])
	if name, bad := r.named(left.String()); bad {
		return "", 0, fmt.Errorf("%w: %q names %s in a form that no variable can stand for: write the whole path, without ~, $HOME or a link in it",
			ErrRefused, text, name)
	}
	if found == 0 {
		return "", 0, nil
	}
	if unsure != "" {
		return "", 0, fmt.Errorf("%w: %q names a package, and it is not certain how systemd reads it: %s", ErrRefused, text, unsure)
	}
	if out = b.String(); found == 1 && strings.HasPrefix(out, "${") && strings.HasSuffix(out, "}") && strings.Count(out, "{") == 1 {
		return out, found, nil
	}
	return systemd.QuoteWord(out), found, nil
}

// named finds a package that a text names otherwise than by its path.
func (r *rewriter) named(text string) (string, bool) {
	if r.place.mentions(text) {
		return "a package", true
	}
	for _, folder := range r.folders {
		name := filepath.Base(folder)
		path := strings.Contains(text, "/"+name) || strings.Contains(text, name+"/") // and no model's alias
		if path && mentions([]byte(text+" "), folder) {
			return name, true
		}
	}
	return "", false
}
