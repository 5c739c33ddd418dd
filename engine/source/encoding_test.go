package source_test

import (
	"fmt"
	"strings"
	"testing"
)

// object commits the work tree with a header and a message as given, byte for byte.
func (r *repo) object(header, message string) string {
	r.t.Helper()
	r.git("add", "-A")
	parent := r.head()
	raw := fmt.Sprintf("tree %s\nparent %s\nauthor A <a@example.org> 1790009000 +0200\ncommitter A <a@example.org> 1790009000 +0200\n%s\n%s",
		r.git("write-tree"), parent, header, message)
	r.write(".git/raw", raw)
	r.git("reset", "-q", "--hard", r.git("hash-object", "-t", "commit", "-w", "--literally", ".git/raw"))
	return r.head()
}

// ebcdic writes letters, digits and a few marks in IBM037.
func ebcdic(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			b.WriteByte(0xf0 + c - '0')
		case c >= 'a' && c <= 'i':
			b.WriteByte(0x81 + c - 'a')
		case c >= 'j' && c <= 'r':
			b.WriteByte(0x91 + c - 'j')
		case c >= 's' && c <= 'z':
			b.WriteByte(0xa2 + c - 's')
		case c == 'T':
			b.WriteByte(0xe3)
		default:
			b.WriteByte(0x40)
		}
	}
	return b.String()
}

var encodingStories = []story{
	{"encoding that hides plain words", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		r.write("kernel.c", text("one", "2", "three"))
		names["revert"] = r.object("encoding IBM037\n", "out\n\nThis reverts commit "+fix+".\n")
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"encoding in which the words are hidden", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		r.write("kernel.c", text("one", "2", "three"))
		names["odd"] = r.object("encoding IBM037\n", ebcdic("This reverts commit "+fix))
		return names["odd"], fix
	}, dunn, `ancestor of the pin, but the message of {odd}, which changes its files, is in the encoding "IBM037" and was not read`},
	{"such an encoding, other files", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		r.write("x", "x\n")
		return r.object("encoding IBM037\n", ebcdic("This reverts commit "+fix)), fix
	}, yes, "ancestor of the pin"},
	{"Latin 1", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		r.write("kernel.c", text("one", "TWO", "3"))
		return r.object("encoding ISO-8859-1\n", "sch\xf6n\n"), fix
	}, yes, "ancestor of the pin"},
	{"a message of two bytes a letter", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		r.write("kernel.c", text("one", "2", "three"))
		names["odd"] = r.object("", strings.Join(strings.Split("This reverts commit "+fix, ""), "\x00"))
		return names["odd"], fix
	}, dunn, "ancestor of the pin, but the message of {odd}, which changes its files, is not text and was not read"},
	{"the encoding of the output", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.commit("kernel.c", text("one", "2", "three"), "out\n\nThis reverts commit "+fix+".")
		r.git("config", "i18n.logOutputEncoding", "UTF-16")
		r.git("config", "i18n.commitEncoding", "UTF-16")
		return names["revert"], fix
	}, no, "reverted by {revert}"},
}

func TestCarriesWhateverTheEncoding(t *testing.T) { runStories(t, encodingStories) }
