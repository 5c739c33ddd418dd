package secret

import (
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

var (
	// The user of a URL and the password, which may have signs in it that a URL should not; some services take a token
	// for the user's name.
	reURL = lazyregexp.New(`([A-Za-z][A-Za-z0-9+.\-]*)://([^\s/?#"'@:]*)(?::((?:[^\s/"'@]*|[^\s/"'@0-9][^\s"'@]*)(?:@[^\s/"'@]*)*))?@`)
	// What is a secret by its shape: tokens of GitHub, GitLab, Hugging Face, OpenAI, Slack, npm, PyPI, Docker, Google,
	// Amazon and others; a JSON web token; the address of a web hook.
	reShape = lazyregexp.New(`\b(?:gh[pousr]_|github_pat_|gl[a-z]{1,5}-|hf_|sk-|[sr]k_(?:live|test)_|xox[a-z]-|xapp-|npm_|pypi-|dckr_pat_|dop_v1_|gsk_|nvapi-|tskey-|AGE-SECRET-KEY-)[A-Za-z0-9_\-]{16,}|` +
		`\bAIza[A-Za-z0-9_\-]{30,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bya29\.[A-Za-z0-9_\-]{16,}|` +
		`\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*|` +
		`\bhooks\.slack\.com/services/([A-Za-z0-9/]+)|\bdiscord(?:app)?\.com/api/webhooks/([0-9]+/[A-Za-z0-9_\-]+)`)
	reBearer = lazyregexp.New(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=\-]{6,})`)
	reBasic  = lazyregexp.New(`(?i)\bbasic[ \t]+([A-Za-z0-9+/]{8,}={0,2})`)
	rePEM    = lazyregexp.New(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`)
)

// shapes are parts of what reShape finds, each of which has one.
var shapes = []string{"gh", "gl", "hf_", "sk-", "k_live_", "k_test_", "xo", "xapp-", "npm_", "pypi-", "dckr_pat_", "dop_v1_", "gsk_", "nvapi-",
	"tskey-", "AGE-", "AIza", "AKIA", "ASIA", "ya29.", "eyJ", "hooks.slack.com/", "/api/webhooks/"}

// shaped finds what is a secret by its shape or its place.
func shaped(s string) []span {
	var found []span
	if strings.Contains(s, "-----BEGIN ") { // this is quicker than what it spares: logs are long
		found = findAll(rePEM(), s)
	}
	if strings.Contains(s, "://") {
		for _, m := range reURL().FindAllStringSubmatchIndex(s, -1) {
			found = append(found, ofURL(s, m)...)
		}
	}
	if holds(s, "bearer") {
		found = append(found, findAll(reBearer(), s)...)
	}
	if holds(s, "basic") {
		for _, x := range findAll(reBasic(), s) {
			if word := s[x.from:x.to]; strings.HasSuffix(word, "=") || random(word) {
				found = append(found, x)
			}
		}
	}
	if slices.ContainsFunc(shapes, func(begin string) bool { return strings.Contains(s, begin) }) {
		found = append(found, findAll(reShape(), s)...)
	}
	return slices.DeleteFunc(found, func(x span) bool { return strings.HasPrefix(s[x.from:x.to], Mask) })
}

// ofURL finds the password in a URL, and the user where that may be a token.
func ofURL(s string, m []int) []span {
	scheme, user, password := s[m[2]:m[3]], s[m[4]:m[5]], ""
	var found []span
	if m[6] >= 0 {
		if password = s[m[6]:m[7]]; password != "" && password != Mask && password != "x-oauth-basic" {
			found = append(found, span{m[6], m[7]})
		}
	}
	alone := password == "" && (strings.HasPrefix(scheme, "http") || strings.HasPrefix(scheme, "ftp"))
	token := password == "x-oauth-basic" || len(user) >= 16 && random(user)
	if user != "" && user != Mask && user != "git" && user != "anonymous" && (alone || token) {
		found = append(found, span{m[4], m[5]})
	}
	return found
}
