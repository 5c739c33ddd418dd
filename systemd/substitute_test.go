package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgv(t *testing.T) {
	s := settingsOf(t, nil, `Environment=A=one "B=two words" "C= 'x y' z\\\\w \"open" E= "L=a=b"`+"\n",
		"PassEnvironment=P\nUnsetEnvironment=GONE\n")
	tests := []struct {
		word   string
		want   []string
		unsure bool
	}{
		{"$A", []string{"one"}, false},
		{"$B", []string{"two", "words"}, false},
		{"${B}", []string{"two words"}, false},
		{"x${B}y${A}", []string{"xtwo wordsyone"}, false},
		{"x$A", []string{"x$A"}, false},
		{"$C", []string{"x y", `z\w`, "open"}, false},
		{"$E", nil, false},
		{"${E}", []string{""}, false},
		{"$NONE", nil, false},
		{"a${NONE}b", []string{"ab"}, false},
		{"$", nil, false},
		{"$$", []string{"$"}, false},
		{"$$A", []string{"$A"}, false},
		{"$$${A}$", []string{"$one$"}, false},
		{"$A$B", nil, false},
		{"${A", []string{"${A"}, false},
		{"${}", []string{""}, false},
		{"${A:-x}", []string{"${A:-x}"}, false},
		{"${A:${B}", []string{"${A:two words"}, false},
		{"$a-b", nil, false},
		{"M$x${M}", []string{"M$xmanager"}, false},
		{"$GONE", nil, false},
		{"$P", nil, true},
		{"$HOME", []string{"/home/ai"}, true},
		{"${INVOCATION_ID}", []string{""}, true},
		{"${L=a}", []string{""}, true},
	}
	inherited := map[string]string{"M": "manager", "GONE": "x", "HOME": "/home/ai"}
	for _, test := range tests {
		c := StartCommand{Argv: []string{"/bin/x", test.word}}
		got, unsure := s.Argv(c, inherited)
		if diff := cmp.Diff(append([]string{"/bin/x"}, test.want...), got); diff != "" || (unsure != "") != test.unsure {
			t.Errorf("%s: unsure %q (-want +got):\n%s", test.word, unsure, diff)
		}
		c.Prefix = "-:"
		if got, unsure := s.Argv(c, nil); !cmp.Equal(got, c.Argv) || unsure != "" {
			t.Errorf("%s is %q (%s) in spite of the prefix", test.word, got, unsure)
		}
	}
	// Without what the manager hands on, a variable that no file sets is not known to be unset.
	if _, unsure := s.Argv(StartCommand{Argv: []string{"x", "$NONE"}}, nil); !strings.Contains(unsure, "NONE") {
		t.Errorf("unsure is %q", unsure)
	}
	if got, unsure := s.Argv(StartCommand{Argv: []string{"$A", "${B}"}}, nil); unsure != "" || len(got) != 2 {
		t.Errorf("what the files set is %q (%s)", got, unsure)
	}
	if _, unsure := s.Argv(StartCommand{Argv: []string{"$NONE"}}, inherited); unsure == "" {
		t.Error("a command without a word is certain")
	}
}

// FuzzArgv: a word with every dollar sign doubled comes through as it is.
func FuzzArgv(f *testing.F) {
	for _, seed := range []string{"", "$A", "${A}$$", "a$", "${", "$${A:x}", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		s := &Settings{}
		s.Argv(StartCommand{Argv: []string{word}}, map[string]string{"A": word})
		c := StartCommand{Argv: []string{"x", strings.ReplaceAll(word, "$", "$$")}}
		if got, unsure := s.Argv(c, nil); unsure != "" || len(got) != 2 || got[1] != word {
			t.Errorf("%q becomes %q (%s)", word, got, unsure)
		}
	})
}
