package systemd

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFile(t *testing.T) {
	long := strings.Repeat("x", maxLine-len("A="))
	tests := []struct {
		name, data string
		want       []Line
		problems   []string
	}{
		{"nothing", "", nil, nil},
		{"blank lines and comments", "\n  \n# a\n ; b \\\n[S]\nA=1\n", []Line{{"S", "A", "1", 6}}, nil},
		{"white space around everything", "\t[S] \n  A b =\t1 2  \n", []Line{{"S", "A b", "1 2", 2}}, nil},
		{"only the first = counts", "[S]\nA=b=c\n", []Line{{"S", "A", "b=c", 2}}, nil},
		{"every line end", "[S]\rA=1\r\nB=2\n\rC=3\x00D=4\n\x00E=5", []Line{
			{"S", "A", "1", 2}, {"S", "B", "2", 3}, {"S", "C", "3", 4}, {"S", "D", "4", 5}, {"S", "E", "5", 6}}, nil},
		{"the same line end twice is two", "[S]\n\r\n\rA=1", []Line{{"S", "A", "1", 3}}, nil},
		{"continued", "[S]\nA=1 \\\n\t2\\\n3\nB=4", []Line{{"S", "A", "1  \t2 3", 2}, {"S", "B", "4", 5}}, nil},
		{"continued over comments", "[S]\nA=1\\\n # x \\\n;\n2\nB=4", []Line{{"S", "A", "1 2", 2}, {"S", "B", "4", 6}}, nil},
		{"a blank line ends it", "[S]\nA=1\\\n\nB=4", []Line{{"S", "A", "1", 2}, {"S", "B", "4", 4}}, nil},
		{"two backslashes do not continue", "[S]\nA=1\\\\\nB=2\n", []Line{{"S", "A", `1\\`, 2}, {"S", "B", "2", 3}}, nil},
		{"three do", "[S]\nA=1\\\\\\\nB=2\n", []Line{{"S", "A", `1\\ B=2`, 2}}, nil},
		{"continued to the end of the file", "[S]\nA=1 \\", []Line{{"S", "A", "1", 2}}, nil},
		{"byte order mark", "\ufeff[S]\nA=\ufeff1", []Line{{"S", "A", "\ufeff1", 2}}, nil},
		{"byte order mark on a later line", "[S]\n\ufeffA=1\n\ufeffB=2", []Line{{"S", "A", "1", 2}, {"S", "\ufeffB", "2", 3}}, nil},
		{"sections again", "[S]\nA=1\n[T]\nA=2\n[S]\nA=3", []Line{{"S", "A", "1", 2}, {"T", "A", "2", 4}, {"S", "A", "3", 6}}, nil},
		{"before the first section", "A=1\n[S]\nA=2", []Line{{"", "A", "1", 1}, {"S", "A", "2", 3}},
			[]string{"f:1: assignment before the first section"}},
		{"no assignment", "[S]\nA\n=1\nA=2", []Line{{"S", "A", "2", 4}}, []string{"f:2: no = in this line", "f:3: nothing before the ="}},
		{"a header that is cut", "[S]\nA=1\n[T\nB=2", []Line{{"S", "A", "1", 2}}, []string{"f:3: section header without ]"}},
		{"a header with a quote", "[S]\nA=1\n[T']\nB=2", []Line{{"S", "A", "1", 2}}, []string{"f:3: bad characters in a section header"}},
		{"not UTF-8", "[S]\nA=1\nB=\xff\nC=2", []Line{{"S", "A", "1", 2}}, []string{"f:3: not UTF-8"}},
		{"no character", "[S]\nA=1\nB=\ufdd0\nC=2", []Line{{"S", "A", "1", 2}}, []string{"f:3: not UTF-8"}},
		{"not UTF-8 in a comment", "[S]\n#\xff\nA=1", []Line{{"S", "A", "1", 3}}, nil},
		{"one byte below the limit", "[S]\nA=" + long[1:] + "\nB=1", []Line{{"S", "A", long[1:], 2}, {"S", "B", "1", 3}}, nil},
		{"at the limit", "[S]\nA=" + long + "\nB=1", nil, []string{"f:2: line too long"}},
		{"joined over the limit", "[S]\nA=1\nB=" + long[2:] + "\\\nxx\nB=1", []Line{{"S", "A", "1", 2}}, []string{"f:4: continued line too long"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file, err := ParseFile("f", []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, file.Lines); diff != "" {
				t.Errorf("lines (-want +got):\n%.2000s", diff)
			}
			var problems []string
			for _, p := range file.Problems {
				problems = append(problems, p.String())
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if file.Empty != (test.data == "") {
				t.Errorf("empty: %v", file.Empty)
			}
		})
	}
	if _, err := ParseFile("f", make([]byte, maxFile+1)); !errors.Is(err, ErrTooBig) {
		t.Errorf("a file that is too big: %v", err)
	}
}

func TestFileGet(t *testing.T) {
	file, err := ParseFile("f", []byte("[X-Mine]\nA=1\nB=2\n[X]\nA=3\n[X-Mine]\nA=4\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{{"X-Mine", "A", "1", 2}, {"X-Mine", "A", "4", 7}}
	if diff := cmp.Diff(want, file.Get("X-Mine", "A")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzParseFile: what was read and is written again, one assignment a line, reads the same; and
// the places are in order and in the file.
func FuzzParseFile(f *testing.F) {
	for _, c := range unitCases() {
		for _, text := range c.files {
			if len(text) < 1<<12 {
				f.Add([]byte(text))
			}
		}
	}
	f.Add([]byte("\ufeff[S]\r\nA=\\\n# c\n b\x00[X\n\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseFile("f", data)
		if err != nil {
			return // refused, which is all that may happen to it
		}
		var again strings.Builder
		var last int
		section := ""
		for _, line := range file.Lines {
			if line.Number <= last && last > 0 || line.Number > len(data)+1 {
				t.Fatalf("line %d after line %d", line.Number, last)
			}
			last = line.Number
			if line.Section != section {
				section = line.Section
				again.WriteString("[" + section + "]\n")
			}
			again.WriteString(line.Key + "=" + line.Value + " \n")
		}
		if bytes.Contains(data, []byte(byteOrderMark)) || strings.Contains(again.String(), "[]") {
			return // what a mark hides at the start of a line, or a section without a name, cannot be written back
		}
		second, err := ParseFile("f", []byte(again.String()))
		if err != nil {
			t.Fatal(err)
		}
		strip := func(lines []Line) []Line {
			var out []Line
			for _, line := range lines {
				line.Number = 0
				out = append(out, line)
			}
			return out
		}
		if diff := cmp.Diff(strip(file.Lines), strip(second.Lines)); diff != "" {
			t.Errorf("written again as %q (-first +second):\n%s", again.String(), diff)
		}
	})
}

func TestOpensQuote(t *testing.T) {
	for text, want := range map[string]bool{"": false, "a": false, "'": true, `"a'`: true, `"a'b"`: false, `\"`: false, `"\"`: true, `'\''`: false, `"a" '`: true} {
		if got := opensQuote([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
