package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DecodeDropIn reads a file that is exactly as Encode writes it. It refuses any other, with the first line that is
// not ours: a switch would lose it.
func DecodeDropIn(data []byte) (*DropIn, error) {
	d, edited, err := readDropIn(data)
	if err == nil {
		err = edited
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// readDropIn reads what our section says, also in a file that a person has added lines to: these are passed over,
// and edited names the first one. Both errors wrap errNotOurs; err means that the section does not say enough.
func readDropIn(data []byte) (d *DropIn, edited, err error) {
	if !utf8.Valid(data) || bytes.ContainsAny(data, "\x00\r") {
		return nil, nil, fmt.Errorf("%w: it is not plain text", errNotOurs)
	}
	d = &DropIn{}
	in, seen := "", map[string]bool{}
	for i, line := range strings.Split(string(data), "\n") {
		err := func() error {
			switch {
			case line == "" || line == header2 || line == header3 || strings.HasPrefix(line, header1):
				return nil
			case line[0] == '#' || line[0] == ';':
				return errors.New("a comment of somebody's")
			case line[0] == '[':
				in = strings.Trim(line, "[]")
				if (in != "Service" && in != section) || line != "["+in+"]" || seen[line] {
					in = ""
					return errors.New("an unknown or repeated section")
				}
				seen[line] = true
				return nil
			}
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return errors.New("no assignment")
			}
			switch in {
			case "Service":
				return d.setting(key, value)
			case section:
				if key != "Blocked" && key != "Adopted" && seen[key] {
					return errors.New("a repeated key")
				}
				seen[key] = true
				return d.field(key, value, line)
			}
			return errors.New("outside of our sections")
		}()
		if err != nil && edited == nil {
			edited = fmt.Errorf("%w: line %d: %w (%q)", errNotOurs, i+1, err, line)
		}
	}
	if err := d.validate(); err != nil {
		return nil, edited, err
	}
	return d, edited, nil
}

// validate checks what every file of ours says.
func (d *DropIn) validate() error {
	if full, err := unitName(d.Unit); d.Unit != "" && (err != nil || full != d.Unit) {
		return fmt.Errorf("%w: %q is not the name of a service", errNotOurs, d.Unit)
	}
	switch {
	case d.Package.Name == "" || d.Package.Path == "":
		return fmt.Errorf("%w: it names no package", errNotOurs)
	case len(d.Environment) == 0:
		return fmt.Errorf("%w: it sets no variable", errNotOurs)
	case d.Start != nil && len(d.Start) == 0:
		return fmt.Errorf("%w: it resets ExecStart= and starts nothing", errNotOurs)
	case d.Generation <= 0:
		return fmt.Errorf("%w: it has no generation", errNotOurs)
	case d.Rollback != rollbackExchange && d.Rollback != rollbackRemove:
		return fmt.Errorf("%w: it does not say how to roll back", errNotOurs)
	}
	return nil
}

// setting takes one line of [Service].
func (d *DropIn) setting(key, value string) error {
	if key == "ExecStart" {
		return d.command(value)
	}
	if key != "Environment" {
		return fmt.Errorf("%s= is not ours", key)
	}
	name, text, err := unquoteAssignment(value)
	if err != nil {
		return err
	}
	for _, a := range d.Environment {
		if a.Key == name {
			return fmt.Errorf("%s is set twice", name)
		}
	}
	d.Environment = append(d.Environment, Assignment{name, text})
	return nil
}

// command takes one ExecStart=: the first one is a reset, which later lines take the place of.
func (d *DropIn) command(value string) error {
	switch {
	case d.Start == nil && value == "":
		d.Start = []string{}
		return nil
	case d.Start == nil || value == "":
		return errors.New("ExecStart= is reset once, before the first command")
	}
	d.Start = append(d.Start, value)
	return nil
}

// field takes one line of [X-1bit].
func (d *DropIn) field(key, value, line string) error {
	fields, err := splitFields(value)
	if err != nil {
		return err
	}
	one := func(into *string) error {
		if len(fields) != 1 {
			return fmt.Errorf("%s has %d fields, not 1", key, len(fields))
		}
		*into = fields[0]
		return nil
	}
	ref := func(into *PackageRef) error {
		if len(fields) != 3 || fields[0] == "" {
			return fmt.Errorf("%s is not name, digest and path", key)
		}
		*into = PackageRef{fields[0], fields[1], fields[2]}
		return nil
	}
	switch key {
	case "Unit":
		return one(&d.Unit)
	case "Package":
		return ref(&d.Package)
	case "Act":
		return one(&d.Act)
	case "Generation":
		var text string
		if err := one(&text); err != nil {
			return err
		}
		d.Generation, err = strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("generation %q is no number", text)
		}
	case "By":
		return one(&d.By)
	case "At":
		var text string
		if err := one(&text); err != nil {
			return err
		}
		d.At, err = time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("time %q: %w", text, err)
		}
		d.At = d.At.UTC()
	case "ServedBefore":
		return ref(&d.ServedBefore)
	case "RolledBackFrom":
		return ref(&d.RolledBackFrom)
	case "Rollback":
		return one(&d.Rollback)
	case "Blocked":
		if len(fields) != 3 || fields[0] == "" {
			return errors.New("a block is not name, digest and reason")
		}
		d.Blocks = append(d.Blocks, Block{fields[0], fields[1], fields[2]})
	case "Lifted":
		if len(fields) != 1 || fields[0] != "yes" {
			return errors.New("lifted is yes, or not there")
		}
		d.Lifted = true
	case "Adopted":
		if len(fields) != 3 {
			return errors.New("an adopted line is not file, line and digest")
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil || n < 1 {
			return fmt.Errorf("line %q is no number", fields[1])
		}
		d.Adopted = append(d.Adopted, Origin{fields[0], n, fields[2]})
	default:
		if !strings.HasPrefix(key, newerKey) {
			return fmt.Errorf("%s= is not ours, and has no effect in [%s]", key, section)
		}
		d.Extra = append(d.Extra, line)
	}
	return nil
}

// quoteField writes a field as it is where nothing in it could be misread, else as a Go string.
func quoteField(s string) string {
	plain := s != "" && !strings.ContainsAny(s, `"\`) && utf8.ValidString(s)
	for _, r := range s {
		plain = plain && unicode.IsGraphic(r) && !unicode.IsSpace(r)
	}
	if plain {
		return s
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))
}

// splitFields is the reverse of quoteField for fields joined by one space.
func splitFields(s string) ([]string, error) {
	var out []string
	for {
		var field string
		if strings.HasPrefix(s, `"`) {
			q, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, errors.New("an unclosed quote")
			}
			if field, err = strconv.Unquote(q); err != nil {
				return nil, errors.New("a bad quote")
			}
			s = s[len(q):]
		} else {
			field, _, _ = strings.Cut(s, " ")
			s = s[len(field):]
		}
		out = append(out, field)
		if s == "" {
			return out, nil
		}
		if s[0] != ' ' {
			return nil, errors.New("a quote inside a field")
		}
		s = s[1:]
	}
}

// unquoteAssignment is the reverse of [systemd.QuoteAssignment].
func unquoteAssignment(s string) (key, value string, err error) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", "", errors.New("an assignment without quotes")
	}
	var b strings.Builder
	in := s[1 : len(s)-1]
	for i := 0; i < len(in); i++ {
		c := in[i]
		if c == '"' {
			return "", "", errors.New("a quote inside an assignment")
		}
		if c == '\\' || c == '%' {
			i++
			if i == len(in) || (c == '%' && in[i] != '%') || (c == '\\' && in[i] != '\\' && in[i] != '"') {
				return "", "", fmt.Errorf("an unknown escape %q", c)
			}
			c = in[i]
		}
		b.WriteByte(c)
	}
	key, value, ok := strings.Cut(b.String(), "=")
	if !ok || key == "" {
		return "", "", errors.New("no variable")
	}
	return key, value, nil
}
