package source

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// mention is what a commit's message says about other commits.
type mention struct {
	reverts []string // ids, as written, that "This reverts commit" names
	picked  []string // ids that a trailer of git cherry-pick -x names
	other   []string // ids that a message says to revert in other words
	titled  string   // what stands in quotes in a title such as Revert "…"
	undoing string   // the message as searched for other commits, if it has the word revert
}

var (
	revertsPattern      = lazyregexp.New(`(?i)(\bthis\s+)?\brevert(?:s|ed|ing)?\s+commits?\s+((?:[0-9a-f]{7,64}\b(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)?)+)`)
	pickedPattern       = lazyregexp.New(`(?m)^\(cherry picked from commit ([0-9a-f]{7,64})\)`)
	rangePattern        = lazyregexp.New(`^\.\.[^.\s]`) // a..b does not hold a
	hexPattern          = lazyregexp.New(`\b[0-9a-f]{7,64}\b`)
	titledPattern       = lazyregexp.New(`^(?i:revert|reapply|reland)\b[^"]*"(.*)"`)
	quotedPattern       = lazyregexp.New(`(?m)^[ \t]*>.*$`)
	undoingPattern      = lazyregexp.New(`(?i)\b(?:un)?revert(?:s|ed|ing)?\b|\bback(?:s|ed|ing)?[ -]?outs?\b`)
	undoneNumberPattern = lazyregexp.New(`\b(?:un)?(?:revert(?:s|ed|ing)?|back(?:s|ed|ing)?[ -]?outs?)[: ]+(?:pr |pull request )?[a-z0-9_./-]*(#[0-9]+)\b`)
	// reversingPattern is git's own addition to the revert of a merge: what
	// was before it, which is not undone.
	reversingPattern = lazyregexp.New(`(?i)(this reverts commit [0-9a-f]{7,64}),\s+reversing\s+changes\s+made\s+to\s+[0-9a-f]{7,64}`)
	anyHexPattern    = lazyregexp.New(`(?i)[0-9a-f]{7,64}`)
	numberPattern    = lazyregexp.New(`(?: \(#[0-9]+\))+$`)
)

// mentionPattern is in every message that readMention could use.
var mentionPattern = lazyregexp.New(`(?i)revert|back(?:s|ed|ing)?[ -]?out|reapply|reland|cherry picked from commit`)

// mentions tells whether the message may speak of another commit, or whether
// nobody can tell.
func mentions(c *commit) bool { return mentionPattern().MatchString(c.message) || c.opaque() != "" }

func readMention(c *commit) mention {
	var m mention
	own := quotedPattern().ReplaceAllString(c.message, "") // a reland quotes what reverted it
	for _, at := range revertsPattern().FindAllStringSubmatchIndex(own, -1) {
		ids := hexPattern().FindAllString(own[at[4]:at[5]], -1)
		if at[2] >= 0 && !rangePattern().MatchString(own[at[5]:]) {
			m.reverts = append(m.reverts, ids...)
		} else {
			m.other = append(m.other, ids...)
		}
	}
	for _, found := range pickedPattern().FindAllStringSubmatch(c.message, -1) {
		m.picked = append(m.picked, found[1])
	}
	if found := titledPattern().FindStringSubmatch(c.subject()); found != nil {
		m.titled = found[1]
	}
	if undoingPattern().MatchString(own) {
		m.undoing = plain(reversingPattern().ReplaceAllString(own, "$1"))
	}
	return m
}

// maxNeedle is how many bytes of a title are enough to find it, and about what
// remains of it where it is shortened.
const maxNeedle = 20

// plain is a text as it is searched: in small letters, each white space one blank.
func plain(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// needle is what is looked for of a title, "" if there is nothing.
func needle(subject string) string {
	title := plain(numberPattern().ReplaceAllString(subject, ""))
	n := maxNeedle
	for rest := title; strings.HasPrefix(rest, `revert "`); n += len(`revert "`) {
		rest = strings.TrimPrefix(rest, `revert "`)
	}
	if len(title) > n {
		for n < len(title) && !utf8.RuneStart(title[n]) {
			n++
		}
		title = title[:n]
	}
	return title
}

// undoes tells whether the message has the word revert and names the commit by
// hash or by the number in its title.
func (m mention) undoes(id, subject string) bool {
	for _, hex := range anyHexPattern().FindAllString(m.undoing, -1) {
		if strings.HasPrefix(id, hex) {
			return true
		}
	}
	for _, found := range undoneNumberPattern().FindAllStringSubmatch(m.undoing, -1) {
		if strings.Contains(numberPattern().FindString(subject), found[1]+")") {
			return true
		}
	}
	return false
}

// undoesTitle tells whether the message has the word revert and the title.
func (m mention) undoesTitle(subject string) bool { return hasWords(m.undoing, needle(subject)) }

// hasWords tells whether the words stand in the text, and not as part of longer
// ones; what was cut to maxNeedle may go on.
func hasWords(text, words string) bool {
	if words == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], words)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(words)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !letter(before) && (len(words) >= maxNeedle || !letter(after)) {
			return true
		}
		from = start + 1
	}
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// about tells whether the title is about the commit of that subject, be it a
// revert of its revert.
func (m mention) about(subject string) bool {
	subject = numberPattern().ReplaceAllString(subject, "")
	quoted := m.titled
	for {
		if numberPattern().ReplaceAllString(quoted, "") == subject {
			return subject != ""
		}
		inner := titledPattern().FindStringSubmatch(quoted)
		if inner == nil {
			return false
		}
		quoted = inner[1]
	}
}
