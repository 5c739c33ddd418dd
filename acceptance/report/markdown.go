package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
)

// Markdown writes the report as an issue or a release note takes it. It has
// every table of the page and none of its pictures.
func (r *Report) Markdown(w io.Writer) error {
	v := r.verdict
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n\n%s\n", plain(v.Plan), v.Verdict, plain(r.claim()), plain(v.Reason))
	fmt.Fprintf(&b, "\n%s\n\nPlan `sha256:%s`, resolved `sha256:%s`, hashed before the first request.\n", r.when(), v.PlanFileSHA256, v.PlanSHA256)
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", plain(note))
	}
	if len(v.NotTested) > 0 {
		b.WriteString("\n## What was not tested\n\n")
		for _, s := range v.NotTested {
			fmt.Fprintf(&b, "- %s\n", plain(s))
		}
	}
	for _, t := range r.tables() {
		t.markdown(&b)
	}
	b.WriteString("\n`1bit accept verdict DIR` computes the verdict again from plan and ledger alone and notices a changed byte.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (t table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n", t.Title)
	if t.Note != "" {
		fmt.Fprintf(b, "\n%s\n", plain(t.Note))
	}
	b.WriteByte('\n')
	row := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + plain(c) + " ")
		}
		b.WriteString("|\n")
	}
	row(t.Head)
	for i := range t.Head {
		if t.Right(i) {
			b.WriteString("|--:")
		} else {
			b.WriteString("|---")
		}
	}
	b.WriteString("|\n")
	for _, cells := range t.Rows {
		row(cells)
	}
}

// plain keeps text that came from elsewhere from being read as Markdown or
// HTML, on one line.
func plain(s string) string {
	s = strings.Join(strings.Fields(ui.Clean(s)), " ")
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "[", `\[`, "@", "@\u200b").Replace(s)
}
