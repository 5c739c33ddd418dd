package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// split takes all words off a line, and says whether the end of it was lost.
func split(line string, rule wordRule) (words []string, lost bool) {
	for {
		word, rest, more, err := nextWord(line, rule)
		if err != nil || !more {
			return words, err != nil
		}
		words, line = append(words, word), rest
	}
}

func TestNextWord(t *testing.T) {
	tests := []struct {
		line string
		want []string
		lost bool
	}{
		{"", nil, false},
		{" \t ", nil, false},
		{"a b\tc", []string{"a", "b", "c"}, false},
		{`"a b" 'c d'`, []string{"a b", "c d"}, false},
		{`a"b c"d'e f'g`, []string{"ab cde fg"}, false},
		{`"" '' x`, []string{"", "", "x"}, false},
		{`"it's" 'say "x"'`, []string{"it's", `say "x"`}, false},
		{`"a\"b" 'a\'b' a\"b`, []string{`a"b`, `a'b`, `a"b`}, false},
		{`a\sb a\tb a\\b`, []string{"a b", "a\tb", `a\b`}, false},
		{`\x41\101\u00e9\U0001F600\xff`, []string{"AAé😀\xff"}, false},
		{`a \x4`, []string{"a"}, true},
		{`a \x00`, []string{"a"}, true},
		{`a \q`, []string{"a"}, true},
		{`a \400`, []string{"a"}, true},
		{`a \18`, []string{"a"}, true},
		{`a \U00110000`, []string{"a"}, true},
		{`a \U0000ffff`, []string{"a"}, true},
		{`\ud800`, []string{"\xed\xa0\x80"}, false},
		{`a "b`, []string{"a"}, true},
		{`a b'`, []string{"a"}, true},
		{`a b\`, []string{"a"}, true},
	}
	for _, test := range tests {
		words, lost := split(test.line, assignmentRule)
		if diff := cmp.Diff(test.want, words); diff != "" || lost != test.lost {
			t.Errorf("%q: lost %v, words (-want +got):\n%s", test.line, lost, diff)
		}
	}
	words, lost := split(`a\bc "d\"e" 'f\q'`, nameRule)
	if diff := cmp.Diff([]string{"abc", `d"e`, "fq"}, words); diff != "" || lost {
		t.Errorf("without escapes: lost %v, words (-want +got):\n%s", lost, diff)
	}
}

// FuzzNextWord: any words, quoted, come back, each as one and in order, and every line comes to
// an end.
func FuzzNextWord(f *testing.F) {
	f.Add("a b", `"x\x41" 'y'`)
	f.Add("", `\u00e9\U0001F600\101\xff`)
	f.Add("'", `a"b c"d "`)
	f.Fuzz(func(t *testing.T, word, line string) {
		quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
		words, lost := split(`"`+quote(word)+`" x"`+quote(line)+`"`, assignmentRule)
		if diff := cmp.Diff([]string{word, "x" + line}, words); diff != "" || lost {
			t.Errorf("lost %v, words (-want +got):\n%s", lost, diff)
		}
		for _, rule := range []wordRule{assignmentRule, nameRule, variableRule} {
			if words, _ := split(line, rule); len(words) > len(line) {
				t.Errorf("%q has %d words", line, len(words))
			}
		}
	})
}
