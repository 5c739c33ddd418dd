package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// decoder walks a YAML document and keeps the first error. It is used instead
// of decoding into a struct for its errors' sake, which name line and key, and
// because a commit such as 1234567 or 12345e7 must not become a number.
type decoder struct {
	file string
	err  error
}

// document returns the root of the only document in b.
func document(file string, b []byte) (*yaml.Node, error) {
	wrong := func(err error) error {
		return fmt.Errorf("%s: %w: %w", file, err, ErrRecipe)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := dec.Decode(&doc); err == io.EOF {
		return nil, wrong(errors.New("is empty: write what belongs in it"))
	} else if err != nil {
		return nil, syntaxError(file, b, err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		return nil, fmt.Errorf("%s:%d: a second document: one is all there may be, remove it: %w", file, more.Line, ErrRecipe)
	} else if err != io.EOF {
		return nil, syntaxError(file, b, err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, wrong(errors.New("is empty: write what belongs in it"))
	}
	return doc.Content[0], nil
}

var (
	yamlLine   = lazyregexp.New(`^yaml: line ([0-9]+): `)
	yamlAnchor = lazyregexp.New(`^yaml: unknown anchor '(.*)' referenced$`)
)

// syntaxError puts the line in front. The YAML package names every line but
// the first, and none where an anchor is unknown.
func syntaxError(file string, b []byte, err error) error {
	text, line := err.Error(), "1"
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		text, line = text[len(m[0]):], m[1]
	} else if m := yamlAnchor().FindStringSubmatch(text); m != nil {
		before, _, _ := bytes.Cut(b, []byte("*"+m[1]))
		line = strconv.Itoa(1 + bytes.Count(before, []byte("\n")))
	}
	return fmt.Errorf("%s:%s: is not YAML: %s: correct it: %w", file, line, strings.TrimPrefix(text, "yaml: "), ErrRecipe)
}

func (d *decoder) fail(n *yaml.Node, key, what string) {
	if d.err != nil {
		return
	}
	line := 1
	if n != nil && n.Line > 0 {
		line = n.Line
	}
	if key == "" {
		key = "the recipe"
	}
	d.err = fmt.Errorf("%s:%d: %s: %s: %w", d.file, line, key, what, ErrRecipe)
}

type pair struct{ key, value *yaml.Node }

// pairs returns the entries of a mapping; nil has none.
func (d *decoder) pairs(n *yaml.Node, key string) []pair {
	if n == nil || d.err != nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "is "+kindOf(n)+": write it as \"key: value\" lines")
		return nil
	}
	var out []pair
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			d.fail(k, key, "has "+kindOf(k)+" for a key: write it out")
			return nil
		}
		if seen[k.Value] {
			d.fail(k, join(key, k.Value), "is there twice: remove one")
			return nil
		}
		seen[k.Value] = true
		out = append(out, pair{k, n.Content[i+1]})
	}
	return out
}

// keys returns the values of a mapping whose keys are all known.
func (d *decoder) keys(n *yaml.Node, key string, known ...string) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	for _, p := range d.pairs(n, key) {
		if !slices.Contains(known, p.key.Value) {
			d.fail(p.key, join(key, p.key.Value), "unknown key: remove it or use one of "+strings.Join(known, ", "))
			return fields
		}
		fields[p.key.Value] = p.value
	}
	return fields
}

// items returns the elements of a list; nil has none.
func (d *decoder) items(n *yaml.Node, key string) []*yaml.Node {
	if n == nil || d.err != nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, key, "is "+kindOf(n)+": write it as a list, one \"- \" line each")
		return nil
	}
	return n.Content
}

// text returns a scalar as it is written; nil is empty. check may be nil.
func (d *decoder) text(n *yaml.Node, key string, check func(string) error) string {
	if n == nil || d.err != nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		d.fail(n, key, "is "+kindOf(n)+": write one value")
		return ""
	}
	if n.Tag == "!!null" || n.Value == "" {
		d.fail(n, key, "has no value: write one or remove the key")
		return ""
	}
	if check != nil {
		if err := check(n.Value); err != nil {
			d.fail(n, key, err.Error())
		}
	}
	return n.Value
}

// flag returns true or false; nil is false.
func (d *decoder) flag(n *yaml.Node, key string) bool {
	switch s := d.text(n, key, nil); s {
	case "true":
		return true
	case "", "false":
	default:
		d.fail(n, key, fmt.Sprintf("is %q: write true or false", s))
	}
	return false
}

func (d *decoder) texts(n *yaml.Node, key string, check func(string) error) []string {
	var out []string
	for _, item := range d.items(n, key) {
		s := d.text(item, key, check)
		if d.err == nil && slices.Contains(out, s) {
			d.fail(item, key, fmt.Sprintf("%q is there twice: remove one", s))
		}
		out = append(out, s)
	}
	return out
}

func join(key, sub string) string {
	if key == "" {
		return sub
	}
	return key + "." + sub
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!merge":
		return "a merge"
	case n.Tag == "!!null":
		return "nothing"
	}
	return "a single value"
}
