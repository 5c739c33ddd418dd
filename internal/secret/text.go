package secret

import (
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

var (
	// A name with what comes between it and its value, as in KEY=value, "key": "value" or Key: value.
	reNamed = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_.\-]*)(["']?)[ \t]*([=:])[ \t]*`)
	// An option whose value is the next word.
	reOption = lazyregexp.New(`(?:^|[\s"'=(])(--?[A-Za-z][A-Za-z0-9_\-]*)["']?(?:[ \t]|\\\n)+`)
	// The password of a URL, with or without the user's name; some services take a token for a name.
	reURL = lazyregexp.New(`([A-Za-z][A-Za-z0-9+.\-]*://)([^\s/?#"'@:]*)(:[^\s/"'@]*(?:@[^\s/"'@]*)*)?@`)
	// What is a secret by its shape: tokens of GitHub, Hugging Face, OpenAI and Slack, a JSON web token, the word after
	// Bearer, a private key.
	reShape = lazyregexp.New(`\b(?:gh[pousr]_|github_pat_|hf_|sk-|xox[abp]-)[A-Za-z0-9_\-]{16,}|` +
		`\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*`)
	reBearer = lazyregexp.New(`(?i)\b(bearer[ \t]+)[A-Za-z0-9._~+/=\-]{6,}`)
	rePEM    = lazyregexp.New(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)
)

// Text is a text, of one line or many, with the secrets in it masked. A line that ends with a backslash goes on in the
// next one, as in a unit file.
func Text(s string) string {
	if strings.Contains(s, "-----BEGIN ") { // these are quicker than what they spare: logs are long
		s = rePEM().ReplaceAllString(s, Mask)
	}
	if strings.Contains(s, "://") {
		s = reURL().ReplaceAllStringFunc(s, maskURL)
	}
	if strings.ContainsAny(s, "=:") {
		s = hide(s, reNamed().FindAllStringSubmatchIndex(s, -1), true)
	}
	s = hide(s, reOption().FindAllStringSubmatchIndex(s, -1), false)
	s = reBearer().ReplaceAllString(s, "${1}"+Mask)
	return reShape().ReplaceAllString(s, Mask)
}

func maskURL(url string) string {
	m := reURL().FindStringSubmatch(url)
	switch {
	case m[3] != "":
		return m[1] + m[2] + ":" + Mask + "@"
	case strings.HasPrefix(m[1], "http") && m[2] != "":
		return m[1] + Mask + "@"
	}
	return url
}

// hide masks the values that follow names. assigned says that a sign stands between them.
func hide(s string, names [][]int, assigned bool) string {
	var b strings.Builder
	done := 0
	for _, m := range names {
		begin := m[1]
		if begin < done || !Named(s[m[2]:m[3]]) || strings.HasPrefix(strings.TrimLeft(s[begin:], `"'`), Mask) {
			continue // within a value that is masked, or one that was
		}
		var quote byte // that encloses name and value
		toEnd := false
		if assigned {
			if m[4] == m[5] && m[2] > 0 && (s[m[2]-1] == '"' || s[m[2]-1] == '\'') {
				quote = s[m[2]-1]
			}
			toEnd = s[m[6]] == ':' && isHeader(s[m[2]:m[3]])
		}
		end := valueEnd(s, &begin, quote, toEnd)
		for end > begin && !toEnd && strings.IndexByte(",;)]}", s[end-1]) >= 0 {
			end--
		}
		if value := s[begin:end]; value == "" || harmless(s[m[2]:m[3]], value) {
			continue
		}
		b.WriteString(s[done:begin] + Mask)
		done = end
	}
	return b.String() + s[done:]
}

// isHeader tells whether a name is a header's whose value has several words.
func isHeader(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "authorization") || strings.HasSuffix(name, "cookie")
}

// valueEnd finds where a value that begins at *begin ends, and moves *begin behind a quote that opens it.
func valueEnd(s string, begin *int, quote byte, toEnd bool) int {
	if quote == 0 && *begin < len(s) && (s[*begin] == '"' || s[*begin] == '\'') {
		quote = s[*begin]
		*begin++
	}
	i := *begin
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++ // whatever it is, a new line too
		case c == '\n', quote != 0 && c == quote:
			return i
		case quote != 0:
		case c == '"' || c == '\'':
			return i
		case toEnd:
		case c == ' ' || c == '\t' || c == '\r' || c == '&':
			return i
		}
	}
	return min(i, len(s))
}
