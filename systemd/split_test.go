package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitCommands(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  [][]RawWord
	}{
		{"", nil},
		{"/bin/true", [][]RawWord{{{"/bin/true", "/bin/true"}}}},
		{`-/bin/x  "a b"   'c d'e \x41`, [][]RawWord{{{"-/bin/x", "-/bin/x"}, {`"a b"`, "a b"}, {`'c d'e`, "c de"}, {`\x41`, "A"}}}},
		{`/bin/x a ; /bin/y \; b;c`, [][]RawWord{
			{{"/bin/x", "/bin/x"}, {"a", "a"}},
			{{"/bin/y", "/bin/y"}, {`\;`, ";"}, {"b;c", "b;c"}},
		}},
		{`/bin/x ";"`, [][]RawWord{{{"/bin/x", "/bin/x"}, {`";"`, ";"}}}},
		{`; /bin/x ; ";" `, [][]RawWord{{{"/bin/x", "/bin/x"}}}},
		{`/bin/x \q "\q\x41" a\`, [][]RawWord{{{"/bin/x", "/bin/x"}, {`\q`, `\q`}, {`"\q\x41"`, `\qA`}, {`a\`, `a\`}}}},
		{`/bin/x ""`, [][]RawWord{{{"/bin/x", "/bin/x"}, {`""`, ""}}}},
	} {
		got, err := SplitCommands(tt.value)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", tt.value, err, diff)
		}
	}
	for _, bad := range []string{`/bin/x "a`, `/bin/x 'a\`, `/bin/x a"`} {
		if got, err := SplitCommands(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzQuoteWord(f *testing.F) {
	for _, seed := range []string{"", "a b", `"\%h`, "$$ ${A}", "\t\n\x7f", "ä", ";", "-x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			return
		}
		got, err := SplitCommands("/bin/x " + QuoteWord(text))
		if err != nil || len(got) != 1 || len(got[0]) != 2 {
			t.Fatalf("%q is written as %s and read as %v, %v", text, QuoteWord(text), got, err)
		}
		if value, unsure, ok := (Specifiers{}).expand(got[0][1].Text); value != text || unsure != "" || !ok {
			t.Fatalf("%q is read as %q (%s)", text, value, unsure)
		}
	})
}
