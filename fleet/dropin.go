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

	"github.com/1bit-systems/pkg/systemd"
)

const (
	dropInName = "zz-1bit.conf"      // what systemd reads
	prevName   = "zz-1bit.conf.prev" // what a rollback would put there; after one, what it put away
	section    = "X-1bit"
)

// How a rollback undoes the drop-in that says so.
const (
	rollbackExchange = "exchange" // swap it with zz-1bit.conf.prev
	rollbackRemove   = "remove"   // put it away: before it there was no file of ours
)

// PackageRef names a package as far as a unit's files know it. Digest is empty for a directory that was never
// installed or imported.
type PackageRef struct{ Name, Digest, Path string }

func (p PackageRef) isZero() bool { return p == PackageRef{} }

// same tells whether both are one package. Names decide where a digest is not known: the store holds a name
// only once.
func (p PackageRef) same(q PackageRef) bool {
	return p.Name == q.Name && (p.Digest == q.Digest || p.Digest == "" || q.Digest == "")
}

// Block is a package that a service must not be switched to, and why.
type Block struct{ Name, Digest, Reason string }

// Assignment is one variable of a drop-in.
type Assignment struct{ Key, Value string }

// DropIn is our file of one unit, the active one or its .prev.
type DropIn struct {
	Unit           string
	Environment    []Assignment
	Package        PackageRef
	Act            string // actSwitch, actRollback
	Generation     int    // grows with every switch; an active file and its .prev carry the same
	By             string
	At             time.Time
	ServedBefore   PackageRef // the last package seen serving before this one
	RolledBackFrom PackageRef // set in a file that a rollback puts there
	Rollback       string     // rollbackExchange or rollbackRemove
	Blocks         []Block
	Extra          []string // lines of the section that a newer version wrote, kept as they are
}

// errNotOurs is wrapped by every error about a drop-in that this program did not write, or that was edited.
var errNotOurs = errors.New("not as this program writes it")

// Encode returns the bytes of the file.
func (d *DropIn) Encode() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by 1bit: the package that %s runs at its next start.\n", d.Unit)
	b.WriteString("# Do not edit: `1bit pkg switch` and `1bit pkg rollback` replace it. Own settings belong in a file\n" +
		"# of their own in this folder, with a name that sorts before this one.\n[Service]\n")
	for _, a := range d.Environment {
		q, err := systemd.QuoteAssignment(a.Key, a.Value)
		if err != nil {
			return nil, fmt.Errorf("quote %s: %w", a.Key, err)
		}
		fmt.Fprintf(&b, "Environment=%s\n", q)
	}
	fmt.Fprintf(&b, "\n[%s]\n", section)
	write := func(key string, fields ...string) {
		for i, f := range fields {
			fields[i] = quoteField(f)
		}
		fmt.Fprintf(&b, "%s=%s\n", key, strings.Join(fields, " "))
	}
	ref := func(key string, p PackageRef) {
		if !p.isZero() {
			write(key, p.Name, p.Digest, p.Path)
		}
	}
	write("Unit", d.Unit)
	ref("Package", d.Package)
	write("Act", d.Act)
	write("Generation", strconv.Itoa(d.Generation))
	write("By", d.By)
	write("At", d.At.UTC().Format(time.RFC3339))
	ref("ServedBefore", d.ServedBefore)
	ref("RolledBackFrom", d.RolledBackFrom)
	write("Rollback", d.Rollback)
	for _, block := range d.Blocks {
		write("Blocked", block.Name, block.Digest, block.Reason)
	}
	for _, line := range d.Extra {
		b.WriteString(line + "\n")
	}
	return b.Bytes(), nil
}

// DecodeDropIn reads a file that Encode wrote. It refuses anything else, with the line: a line that a person
// added would be lost by the next switch.
func DecodeDropIn(data []byte) (*DropIn, error) {
	d := &DropIn{}
	if !utf8.Valid(data) || bytes.ContainsAny(data, "\x00\r") {
		return nil, fmt.Errorf("%w: it is not plain text", errNotOurs)
	}
	in, seen := "", map[string]bool{}
	for i, line := range strings.Split(string(data), "\n") {
		err := func() error {
			switch {
			case line == "" || line[0] == '#':
				return nil
			case line[0] == '[':
				in = strings.Trim(line, "[]")
				if (in != "Service" && in != section) || line != "["+in+"]" || seen[line] {
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
				if key != "Blocked" && seen[key] {
					return errors.New("a repeated key")
				}
				seen[key] = true
				return d.field(key, value, line)
			}
			return errors.New("outside of a section")
		}()
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errNotOurs, i+1, err)
		}
	}
	return d, d.validate()
}

// validate checks what every file of ours says.
func (d *DropIn) validate() error {
	switch {
	case d.Package.Name == "" || d.Package.Path == "":
		return fmt.Errorf("%w: it names no package", errNotOurs)
	case len(d.Environment) == 0:
		return fmt.Errorf("%w: it sets no variable", errNotOurs)
	case d.Generation <= 0:
		return fmt.Errorf("%w: it has no generation", errNotOurs)
	case d.Rollback != rollbackExchange && d.Rollback != rollbackRemove:
		return fmt.Errorf("%w: it does not say how to roll back", errNotOurs)
	}
	return nil
}

// setting takes one line of [Service].
func (d *DropIn) setting(key, value string) error {
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
	default:
		d.Extra = append(d.Extra, line)
	}
	return nil
}

// block adds a block, or renews the reason of one that is there.
func (d *DropIn) block(p PackageRef, reason string) {
	d.Blocks = append(without(d.Blocks, p), Block{p.Name, p.Digest, reason})
}

// without returns blocks less the ones of p.
func without(blocks []Block, p PackageRef) []Block {
	var out []Block
	for _, b := range blocks {
		if !p.same(PackageRef{Name: b.Name, Digest: b.Digest}) {
			out = append(out, b)
		}
	}
	return out
}

// blocked finds the block of p.
func blocked(blocks []Block, p PackageRef) (Block, bool) {
	for _, b := range blocks {
		if p.same(PackageRef{Name: b.Name, Digest: b.Digest}) {
			return b, true
		}
	}
	return Block{}, false
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
