package systemd

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnvironmentFile(t *testing.T) {
	tests := []struct {
		name, data string
		want       []Pair
	}{
		{"nothing", "", nil},
		{"plain", "A=1\nB=two words \n", []Pair{{"A", "1", 1, ""}, {"B", "two words", 2, ""}}},
		{"no line end", "A=1", []Pair{{"A", "1", 1, ""}}},
		{"white space", "  A  =  1\t\n", []Pair{{"A", "1", 1, ""}}},
		{"empty", "A=\nB=''\nC=", []Pair{{"A", "", 1, ""}, {"B", "", 2, ""}, {"C", "", 3, ""}}},
		{"comments", "# A=1\n ; B=2\nC=3 # D=4\n", []Pair{{"C", "3 # D=4", 3, ""}}},
		{"quotes", "A='a \"b\"'\nB=\"c 'd'\"\nC=e'f'\n", []Pair{{"A", `a "b"`, 1, ""}, {"B", "c 'd'", 2, ""}, {"C", "e'f'", 3, ""}}},
		{"after a quote", "A='a'\"b\" c 'd'\n", []Pair{{"A", "abc 'd'", 1, ""}}},
		{"escapes", `A=a\b\\c\"` + "\n" + `B="\$ \x \" \\ \` + "`\"\n" + `C='\n'` + "\n",
			[]Pair{{"A", `ab\c"`, 1, ""}, {"B", "$ \\x \" \\ `", 2, ""}, {"C", `\n`, 3, ""}}},
		{"continued", "A=a\\\n  b\nB=\"c\\\nd\"\nC='e\nf'\nD=4\n",
			[]Pair{{"A", "a  b", 1, ""}, {"B", "cd", 3, ""}, {"C", "e\nf", 5, ""}, {"D", "4", 7, ""}}},
		{"a space that is escaped stays", "A=a\\ \nB=b\\  \n", []Pair{{"A", "a ", 1, ""}, {"B", "b ", 2, ""}}},
		{"nothing is expanded", "A=$HOME %h ${X} ~\n", []Pair{{"A", "$HOME %h ${X} ~", 1, ""}}},
		{"names that are none", "export A=1\n1B=2\nC.d=3\nno equals\n=4\nE=5\n", []Pair{{"E", "5", 6, ""}}},
		{"line ends", "A=1\r\nB=2\rC=3\n\nD=4\r\n", []Pair{{"A", "1", 1, ""}, {"B", "2", 2, ""}, {"C", "3", 3, ""}, {"D", "4", 5, ""}}},
		{"byte order mark", "\ufeffA=1\nB=2\n", []Pair{{"B", "2", 2, ""}}},
		{"open quote", "A='a\nB=1\n", []Pair{{"A", "a\nB=1\n", 1, ""}}},
		{"twice", "A=1\nA=2\n", []Pair{{"A", "1", 1, ""}, {"A", "2", 2, ""}}},
		{"control characters", "A=\x01\x7f\n", []Pair{{"A", "\x01\x7f", 1, ""}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pairs, err := ParseEnvironmentFile("f", []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, pairs); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestParseEnvironmentFileUnsure has the one place where versions of systemd differ.
func TestParseEnvironmentFileUnsure(t *testing.T) {
	pairs, err := ParseEnvironmentFile("f", []byte("A=1\n# say \\\nB=2\nC=3\n# a \\ b\nD=4\n"))
	if err != nil {
		t.Fatal(err)
	}
	var unsure []string
	for _, pair := range pairs {
		if pair.Unsure != "" {
			unsure = append(unsure, pair.Key)
		}
	}
	if diff := cmp.Diff([]string{"B"}, unsure); diff != "" || len(pairs) != 4 {
		t.Errorf("%v, unsure (-want +got):\n%s", pairs, diff)
	}
}

// TestParseEnvironmentFileDisputed: where such a comment decides over what is in the file, one version may refuse it and
// the other not.
func TestParseEnvironmentFileDisputed(t *testing.T) {
	tests := []struct {
		name, data string
		want       []string // what the one takes that does not refuse it
	}{
		{"a quote that only the later one sees", "# c \\\nA=\"\\\\\\\n$A\n_F=\\\n%h\\$\nB=\\\\\\$\t\n# \ufffe=1\n", []string{"_F=%h$", `B=\$`}},
		{"a pair that only the later one sees", "A=1\n# c \\\nB=\xff\nC=2\n", []string{"A=1", "C=2"}},
		{"a quote that only the earlier one sees", "# c \\\nA='\nB='\n# \xff\n'\n", []string{"A=\nB="}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pairs, err := ParseEnvironmentFile("f", []byte(test.data))
			if !errors.Is(err, ErrDisputedFile) || errors.Is(err, ErrEnvironmentFile) {
				t.Errorf("%v, want ErrDisputedFile", err)
			}
			var got []string
			for _, pair := range pairs {
				if got = append(got, pair.Key+"="+pair.Value); pair.Unsure == "" {
					t.Errorf("%+v is not unsure", pair)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseEnvironmentFileRefused(t *testing.T) {
	for _, data := range []string{"A=1\x00\n", "A=1\nB=\xff\n", "\xff=1\n", "A=\ufffe\n"} {
		if pairs, err := ParseEnvironmentFile("f", []byte(data)); !errors.Is(err, ErrEnvironmentFile) {
			t.Errorf("%q: %v, %v; want ErrEnvironmentFile", data, pairs, err)
		}
	}
	if _, err := ParseEnvironmentFile("f", make([]byte, maxFile+1)); !errors.Is(err, ErrTooBig) {
		t.Errorf("a file that is too big: %v", err)
	}
}

// FuzzParseEnvironmentFile: a value in double quotes comes back, whatever stands before it, as
// long as that ends its lines.
func FuzzParseEnvironmentFile(f *testing.F) {
	f.Add("A=1\n# c \\\nB='2'\n", "x \"y\" $z `w` \\")
	f.Add("export A=\\\n1", "a\nb")
	f.Add("A=\"open", "")
	f.Fuzz(func(t *testing.T, before, value string) {
		before = strings.NewReplacer(`\`, "", `'`, "", `"`, "").Replace(before) + "\n"
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value)
		pairs, err := ParseEnvironmentFile("f", []byte(before+"LAST=\""+quoted+"\"\n"))
		if strings.Contains(before+value, "\x00") || errors.Is(err, ErrEnvironmentFile) && !validUTF8(before+value) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if last := len(pairs) - 1; last < 0 || pairs[last].Key != "LAST" || pairs[last].Value != value {
			t.Errorf("%q after %q: %v", value, before, pairs)
		}
		for _, pair := range pairs {
			if !validName(pair.Key) || pair.Line < 1 || pair.Line > strings.Count(before, "\n")+strings.Count(before, "\r")+1 {
				t.Errorf("%q: %+v", before, pair)
			}
		}
	})
}
