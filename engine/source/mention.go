package source

import "regexp"

// mention is what a commit's message says about other commits.
type mention struct {
	reverts []string // ids, as written, that "This reverts commit" names
	picked  []string // ids that a trailer of git cherry-pick -x names
	other   []string // ids that a message says to revert in other words
	titled  string   // what stands in quotes in a title such as Revert "…"
}

var (
	revertsPattern = regexp.MustCompile(`(?i)(\bthis\s+)?\brevert(?:s|ed|ing)?\s+commits?\s+((?:[0-9a-f]{7,64}\b(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)?)+)`)
	pickedPattern  = regexp.MustCompile(`(?m)^\(cherry picked from commit ([0-9a-f]{7,64})\)`)
	hexPattern     = regexp.MustCompile(`\b[0-9a-f]{7,64}\b`)
	titledPattern  = regexp.MustCompile(`^(?i:revert|reapply|reland)\b[^"]*"(.*)"`)
	quotedPattern  = regexp.MustCompile(`(?m)^[ \t]*>.*$`)
	numberPattern  = regexp.MustCompile(`(?: \(#[0-9]+\))+$`)
)

// mentionPattern is in every message that readMention could use.
var mentionPattern = regexp.MustCompile(`(?i)revert|reapply|reland|cherry picked from commit`)

// mentions tells whether the message may speak of another commit, or whether
// nobody can tell.
func mentions(c *commit) bool { return mentionPattern.MatchString(c.message) || c.opaque() != "" }

func readMention(c *commit) mention {
	var m mention
	own := quotedPattern.ReplaceAllString(c.message, "") // a reland quotes what reverted it
	for _, found := range revertsPattern.FindAllStringSubmatch(own, -1) {
		ids := hexPattern.FindAllString(found[2], -1)
		if found[1] != "" {
			m.reverts = append(m.reverts, ids...)
		} else {
			m.other = append(m.other, ids...)
		}
	}
	for _, found := range pickedPattern.FindAllStringSubmatch(c.message, -1) {
		m.picked = append(m.picked, found[1])
	}
	if found := titledPattern.FindStringSubmatch(c.subject()); found != nil {
		m.titled = found[1]
	}
	return m
}

// about tells whether the title is about the commit of that subject, be it a
// revert of its revert.
func (m mention) about(subject string) bool {
	subject = numberPattern.ReplaceAllString(subject, "")
	quoted := m.titled
	for {
		if numberPattern.ReplaceAllString(quoted, "") == subject {
			return subject != ""
		}
		inner := titledPattern.FindStringSubmatch(quoted)
		if inner == nil {
			return false
		}
		quoted = inner[1]
	}
}
