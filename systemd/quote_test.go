package systemd

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// readBack reads what a drop-in with one line gives a variable.
func readBack(t *testing.T, key, assignment string) (Setting, bool) {
	t.Helper()
	file, err := ParseFile("d.conf", []byte("[Service]\nEnvironment="+assignment+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	settings := Effective([]*File{file}, ReadEnvironmentFiles, nil)
	if len(settings.Problems) > 0 {
		t.Errorf("%s: %v", assignment, settings.Problems)
	}
	setting, ok := settings.Environment()[key]
	return setting, ok
}

func TestQuoteAssignment(t *testing.T) {
	tests := []struct{ key, value, want string }{
		{"A", "", `"A="`},
		{"A", "b c", `"A=b c"`},
		{"A", `C:\x "y" 'z'`, `"A=C:\\x \"y\" 'z'"`},
		{"A_1", "100%h $HOME", `"A_1=100%%h $HOME"`},
		{"a", "# ; é 漢", `"a=# ; é 漢"`},
	}
	for _, test := range tests {
		got, err := QuoteAssignment(test.key, test.value)
		if err != nil || got != test.want {
			t.Errorf("%s=%s: %s, %v; want %s", test.key, test.value, got, err, test.want)
		}
		if setting, _ := readBack(t, test.key, got); setting.Value != test.value || setting.Unsure != "" {
			t.Errorf("%s reads as %+v", got, setting)
		}
	}
}

func TestQuoteAssignmentRefuses(t *testing.T) {
	tests := []struct{ key, value string }{
		{"", "x"}, {"1A", "x"}, {"A B", "x"}, {"A=B", "x"}, {"A.B", "x"}, {"é", "x"}, {"A\n", "x"},
		{"A", "a\nb"}, {"A", "a\tb"}, {"A", "\x00"}, {"A", "\x7f"}, {"A", "\r"}, {"A", "\u0085"},
		{"A", "\xff"}, {"A", "\ufffe"}, {"A", "\ufdd0"},
		{"A", strings.Repeat("x", maxVariable-1)},
	}
	for _, test := range tests {
		if got, err := QuoteAssignment(test.key, test.value); !errors.Is(err, ErrUnquotable) {
			t.Errorf("%q=%.20q: %.40s, %v; want ErrUnquotable", test.key, test.value, got, err)
		}
	}
	if _, err := QuoteAssignment("A", strings.Repeat("x", maxVariable-2)); err != nil {
		t.Errorf("the longest value: %v", err)
	}
}

func FuzzQuoteAssignment(f *testing.F) {
	f.Add("ONEBIT_LLAMA_SERVER", "/home/a b/.local/share/1bit-hrx-1/hrx/llama/bin/llama-server")
	f.Add("A", `\ " ' % %% %h $ # ; é 😀`)
	f.Add("A", `\\\`)
	f.Fuzz(func(t *testing.T, key, value string) {
		quoted, err := QuoteAssignment(key, value)
		if err != nil {
			if validName(key) && validUTF8(value) && !strings.ContainsFunc(value, unicode.IsControl) && len(value) < 1<<16 {
				t.Errorf("refused: %v", err)
			}
			return
		}
		if setting, ok := readBack(t, key, quoted); !ok || setting.Value != value || setting.Unsure != "" {
			t.Errorf("%q=%q is written as %s and reads as %+v", key, value, quoted, setting)
		}
	})
}
