package systemd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuotedValuesReachTheProcess takes values through QuoteAssignment, a drop-in and systemd
// into the environment of a process.
func TestQuotedValuesReachTheProcess(t *testing.T) {
	if !inside(t, false) {
		return
	}
	values := []string{"", " ", "a b", `\`, `\\`, `a\nb`, `"`, `'`, `"a`, `a" "b`, "%", "%%", "%h", "%4", "100%", "$HOME", "${A}", "$$",
		"é漢😀", ";", "#", "# c", "a;b", "=", "~", "*", "`id`", "a\\", "\\ ", "\u00a0", strings.Repeat("long ", 5000),
		"/home/a b/.local/share/1bit-hrx-3092596/hrx/llama/bin/llama-server"}
	g := rand.New(rand.NewPCG(seed(t), 1))
	bits := []rune(`ab \"'%$;#=~` + "é漢😀{}`*?[]|&<>!()@\u2028\ufeff")
	for range 300 {
		var text strings.Builder
		for range g.IntN(12) {
			text.WriteRune(bits[g.IntN(len(bits))])
		}
		values = append(values, text.String())
	}
	m, out := connectHere(t), filepath.Join(t.TempDir(), "environ")
	var dropIn strings.Builder
	dropIn.WriteString("[Service]\n")
	for i, value := range values {
		assignment, err := QuoteAssignment(fmt.Sprintf("V%d", i), value)
		if err != nil {
			t.Fatal(err)
		}
		dropIn.WriteString("Environment=" + assignment + "\n")
	}
	install(t, m, map[string]string{
		"t-quote.service":          "[Service]\nType=oneshot\nExecStart=/bin/cp /proc/self/environ " + out + "\n",
		"t-quote.service.d/z.conf": dropIn.String(),
	})
	mustRun(t, m.Start, "t-quote", "done")
	got, _ := readEnviron(t, out)
	for i, value := range values {
		if have, ok := got[fmt.Sprintf("V%d", i)]; !ok || have != value {
			t.Errorf("%q arrives as %q (set: %v)", value, have, ok)
		}
	}
}

// TestQuotedWordsReachTheProcess does the same for QuoteWord and the command line.
func TestQuotedWordsReachTheProcess(t *testing.T) {
	if !inside(t, false) {
		return
	}
	words := []string{"", " ", `\`, `a\q`, `\;`, ";", `"`, "'", "%", "%%h", "%4", "100%", "$HOME", "${A}", "$", "$$", "a$", "\t\n\x01\x7f", "é漢😀",
		"#", "a;b", "\u00a0", "\xff\xfe", "-x", strings.Repeat("long ", 800)}
	g := rand.New(rand.NewPCG(seed(t), 2))
	bits := []rune("ab \\\"'%$;#=~é漢😀{}`*?|&<>!@\t\n")
	for range 300 {
		var text strings.Builder
		for range g.IntN(12) {
			text.WriteRune(bits[g.IntN(len(bits))])
		}
		words = append(words, text.String())
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(home, "words")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	var line strings.Builder
	for _, word := range words {
		line.WriteString(" " + strings.ReplaceAll(QuoteWord(word), "$", "$$"))
	}
	m, noter := connectHere(t), bringStarted(t, work)
	install(t, m, map[string]string{"t-words.service": "[Service]\nType=oneshot\nExecStart=" + noter + line.String() + "\n"})
	mustRun(t, m.Start, "t-words", "done")
	got := runs(t, work, "t-words.service")
	if len(got) != 1 || len(got[0].argv) != len(words)+1 {
		t.Fatalf("%d words arrive as %q", len(words), got)
	}
	for i, word := range words {
		if have := got[0].argv[i+1]; have != word {
			t.Errorf("%q arrives as %q", word, have)
		}
	}
}
