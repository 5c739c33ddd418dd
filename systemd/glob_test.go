package systemd

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no string // names, with blanks between them
		err     error
	}{
		{"*", "a a.env é.env", ".a", nil},
		{"*.env", "a.env", "a.en .env", nil},
		{"?.env", "a.env", ".env ab.env", nil},
		{".*", ".a", "a", nil},
		{`\.h`, ".h", "h", nil},
		{"[.]h", "", ".h", nil},
		{"[[:digit:]]*", "1a", "a1", nil},
		{"[![:digit:]]*", "a1 -", "1a .a", nil},
		{"[^a]b", "bb", "ab", nil},
		{"[]a]x", "]x ax", "bx", nil},
		{"[!]a]x", "bx", "]x ax", nil},
		{"[a-]x", "ax -x", "bx", nil},
		{"[-a]x", "ax -x", "bx", nil},
		{"a[]]b", "a]b", "ab", nil},
		{`q[\]-]z`, "q]z q-z", `q\z`, nil},
		{`[\q]z`, "qz", `\z`, nil},
		{"[a-c-e]", "b - e", "d", nil},
		{"[[.q.]]z", "qz", ".z", nil},
		{"[a-[.c.]]", "b", "d", nil},
		{"[[]x", "[x", "x", nil},
		{"[c-a]", "", "a b c", nil},
		{"a*b*c", "abc axbxc abbc", "ab acb", nil},
		{"é*", "é éa", "e", nil},
		{"[!a]*", "b", "a", nil},
		{"q[+--]z", "", "", errLocale},
		{"[é]", "", "", errLocale},
		{"[a-Z]", "", "", errLocale},
		{"[[=q=]]", "", "", errGlob},
		{"[[:digit:]-z]", "", "", errGlob},
		{"[[:nonsense:]]", "", "", errGlob},
		{"[[:alpha]", "", "", errGlob},
		{"[[.ab.]]", "", "", errGlob},
		{"[a", "", "", errGlob},
		{`a\`, "", "", errGlob},
	} {
		part, err := parseGlob(tt.pattern)
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v, want %v", tt.pattern, err, tt.err)
		}
		if err != nil {
			continue
		}
		for want, names := range map[bool]string{true: tt.yes, false: tt.no} {
			for _, name := range strings.Fields(names) {
				if got, err := part.matches(name); got != want || err != nil {
					t.Errorf("%s matches %s: %v, %v", tt.pattern, name, got, err)
				}
			}
		}
	}
	for pattern, name := range map[string]string{"?": "é", "??": "é", "[[:alpha:]]": "é", "[!a]*": "é", "x[a-z]*": "xé", "*?a": "a\xff"} {
		part, err := parseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := part.matches(name); !errors.Is(err, errLocale) {
			t.Errorf("%s matches %s: %v, %v; want it to depend on the locale", pattern, name, got, err)
		}
	}
}

func TestSameOrder(t *testing.T) {
	for pair, want := range map[string]bool{
		"/e/10-a /e/20-a": true, "/e/1 /e/a": true, "/e/a /e/ab": true, "/e/Base /e/local": true, "/e/a /e/a.b": true,
		"/e/B /e/a": false, "/e/A /e/a": false, "/e/a-x /e/ab": false, "/e/_a /e/a": false, "/e/a /e/é": false,
	} {
		a, b, _ := strings.Cut(pair, " ")
		if got := sameOrder(a, b); got != want {
			t.Errorf("%s: %v, want %v", pair, got, want)
		}
	}
}

func TestEnvironmentReader(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"1a.env", "2b.env", ".h.env", "sub/s.env", "sub2/s.env", "sub2/t.env", "plain"} {
		writeFile(t, filepath.Join(dir, name), "A="+name+"\n")
	}
	for pattern, want := range map[string]string{
		"/*.env": "1a.env 2b.env", "/[[:digit:]]a.env": "1a.env", "/s*/s.env": "sub/s.env sub2/s.env", "/*/t*": "sub2/t.env",
		"/.h*": ".h.env", `/pl\ain`: "plain", "//./plain/": "plain", "/*/none": "", "/none": "", "/plain/*": "",
	} {
		files, err := ReadEnvironmentFiles(dir + pattern)
		if (want == "") != errors.Is(err, fs.ErrNotExist) || want != "" && err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		var got []string
		for _, one := range files {
			got = append(got, strings.TrimPrefix(one.Path, dir+"/"))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
	// What two files set is not certain where their order is not.
	writeFile(t, filepath.Join(dir, "o", "B"), "A=B\nC=1\n")
	writeFile(t, filepath.Join(dir, "o", "a"), "A=a\n")
	file, err := ParseFile("x.service", []byte("[Service]\nExecStart=/bin/x\nEnvironmentFile="+dir+"/o/*\n"))
	if err != nil {
		t.Fatal(err)
	}
	env := Effective([]*File{file}, ReadEnvironmentFiles, nil).Environment()
	if env["A"].Unsure == "" || env["C"].Unsure != "" {
		t.Errorf("%+v", env)
	}
}

// A unit may be anybody's: it does not make us read without end.
func TestEnvironmentReaderIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		writeFile(t, filepath.Join(dir, strconv.Itoa(i), "f"), strings.Repeat("x", 100))
	}
	for name, r := range map[string]*environmentReader{
		"entries": {entries: 40, files: 100, bytes: 10_000},
		"files":   {entries: 100, files: 29, bytes: 10_000},
		"bytes":   {entries: 100, files: 100, bytes: 2_999},
	} {
		files, err := r.read(dir + "/*/*")
		if len(files) > 0 && err == nil {
			err = files[len(files)-1].Err
		}
		if !errors.Is(err, ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := &environmentReader{entries: 60, files: 30, bytes: 3_000}
	if files, err := r.read(dir + "/*/*"); err != nil || len(files) != 30 || files[29].Err != nil {
		t.Errorf("%d files, %v", len(files), err)
	}
}
