package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// mentions tells whether text names the package in folder: by the folder's name as a whole word, or by a word that
// could become it, as 1bit-hrx-%i and 1bit-hrx-${ID} could. A path to a folder of the same name that is there, and
// another one, does not count. Doubt counts: what text means is up to whoever reads it.
func mentions(text []byte, folder string) bool {
	name := []byte(filepath.Base(folder))
	for at := 0; ; at += len(packager.DirPrefix) {
		i := bytes.Index(text[at:], []byte(packager.DirPrefix))
		if i < 0 {
			return false
		}
		at += i
		word := text[at:]
		if end := bytes.IndexFunc(word, notInName); end >= 0 {
			word = word[:end]
		}
		next := text[at+len(word):]
		found := bytes.HasPrefix(name, word) && len(next) > 0 && strings.IndexByte(`%$*?[{\`, next[0]) >= 0 ||
			bytes.HasPrefix(word, name) && len(bytes.Trim(word[len(name):], "._-")) == 0
		if found && !elsewhere(pathBefore(text[:at])+string(name), folder) {
			return true
		}
	}
}

// notInName tells whether a package's name ends before r.
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// endsPath are the characters around a path in a unit file, an environment file or a shell's command.
const endsPath = " \t\r\n\"'`=:;,(){}|<>&"

// pathBefore is the path that text ends in.
func pathBefore(text []byte) string {
	return string(text[bytes.LastIndexAny(text, endsPath)+1:])
}

// elsewhere tells whether path is certain to be another folder than folder.
func elsewhere(path, folder string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	here, err := os.Stat(folder)
	return err == nil && !os.SameFile(there, here)
}

// unescaped is text with systemd's \xHH read, as in 1bit\x2dhrx; nil when there is none.
func unescaped(text []byte) []byte {
	parts := bytes.Split(text, []byte(`\x`))
	if len(parts) == 1 {
		return nil
	}
	out := parts[0]
	for _, part := range parts[1:] {
		if len(part) >= 2 {
			if c, err := strconv.ParseUint(string(part[:2]), 16, 8); err == nil {
				out = append(append(out[:len(out):len(out)], byte(c)), part[2:]...)
				continue
			}
		}
		out = append(append(out[:len(out):len(out)], `\x`...), part...)
	}
	return out
}

// specified is text with the specifiers that make up a unit's name replaced, as in 1bit-hrx-%i.
func specified(text []byte, unit string) []byte {
	stem := strings.TrimSuffix(unit, ".service")
	prefix, instance, _ := strings.Cut(stem, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	pairs := []string{"%%", "%%", "%i", instance, "%p", prefix, "%n", unit, "%N", stem, "%j", last}
	if !strings.ContainsAny(unit, `-\`) { // nothing is escaped in it
		pairs = append(pairs, "%I", instance, "%P", prefix, "%J", last)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}
