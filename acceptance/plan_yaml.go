package acceptance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

var (
	yamlUnknown = lazyregexp.New(`line (\d+): field (\S+) not found in type \S+`)
	yamlQuoted  = lazyregexp.New(`^line (\d+): "`)
	yamlType    = lazyregexp.New(`line (\d+): cannot unmarshal !!\w+ (.*) into (\S+)`)
)

// plainYAML turns the decoder's errors into sentences that name line and key.
func plainYAML(err error, root *yaml.Node) string {
	text := err.Error()
	var list *yaml.TypeError
	if errors.As(err, &list) && len(list.Errors) > 0 {
		text = list.Errors[0]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if m := yamlUnknown().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("line %s: unknown key %s", m[1], m[2])
	}
	if m := yamlType().FindStringSubmatch(text); m != nil {
		key := keyAt(root, m[1])
		return fmt.Sprintf("line %s: %s%s is not of the right kind: give %s", m[1], key, strings.Trim(m[2], "`"), kindInWords(m[3]))
	}
	if m := yamlQuoted().FindStringSubmatch(text); m != nil {
		return "line " + m[1] + ": " + keyAt(root, m[1]) + strings.TrimPrefix(text, "line "+m[1]+": ")
	}
	return text
}

// keyAt names the key whose value stands on a line, with a colon after it.
func keyAt(n *yaml.Node, line string) string {
	found := ""
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			for _, c := range n.Content {
				walk(c, path)
			}
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			if fmt.Sprint(n.Content[i].Line) == line || fmt.Sprint(n.Content[i+1].Line) == line {
				found = name + ": "
			}
			walk(n.Content[i+1], name)
		}
	}
	walk(n, "")
	return found
}

// lineOf gives "line N: " for a key such as load.requests or arms.0.lives, or for the nearest
// parent that the file has.
func lineOf(root *yaml.Node, key string) string {
	n, line := root, 0
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for part := range strings.SplitSeq(key, ".") {
		var next *yaml.Node
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				line, next = n.Content[i].Line, n.Content[i+1]
			}
		}
		if i, err := strconv.Atoi(part); n.Kind == yaml.SequenceNode && err == nil && i < len(n.Content) {
			line, next = n.Content[i].Line, n.Content[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

// kindInWords says what belongs where the decoder wanted one of our types.
func kindInWords(of string) string {
	words := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative", "float64": "a number",
		"bool": "true or false", "string": "a text", "[]int": "a list of whole numbers, such as [24, 300]", "[]string": "a list of texts",
		"map[string]string": "keys with a text each", "[]acceptance.Arm": "a list of arms, each with keys of its own",
		"acceptance.Neighbour": "keys of its own, such as {kind: none}", "acceptance.Duration": "a duration such as 90s",
	}
	if word, ok := words[of]; ok {
		return word
	}
	return "keys of its own"
}
