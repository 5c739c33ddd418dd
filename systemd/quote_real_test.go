package systemd

import (
	"fmt"
	"math/rand/v2"
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
