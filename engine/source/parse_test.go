package source

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const (
	id1 = "1111111111111111111111111111111111111111"
	id2 = "2222222222222222222222222222222222222222"
)

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("1 .M N... 100644 100644 100644 " + id1 + " " + id2 + " a b\x00u UU N... 1 2 3 4 " + id1 + " " + id1 + " " + id1 + " c\x00"))
	f.Add([]byte("2 R. N... 100644 100644 100644 " + id1 + " " + id2 + " R100 new\x00old\x00# x\x00? y\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := parseStatus(b)
		for _, name := range files {
			if err == nil && (name == "" || strings.Contains(name, "\x00")) {
				t.Errorf("file %q", name)
			}
		}
	})
}

func TestParseStatusRenamed(t *testing.T) {
	got, err := parseStatus([]byte("2 R. N... 100644 100644 100644 " + id1 + " " + id2 + " R100 new name\x00old\x001 .M N... 1 2 3 " + id1 + " " + id2 + " x\x00"))
	if err != nil || !cmp.Equal(got, []string{"new name", "x"}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"1", "1 .M", "1 .M\x00", "9 x\x00", "2 R. N... 1 2 3 4 5 R100 new\x00old"} {
		if got, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func FuzzParseObjects(f *testing.F) {
	object := "tree " + id2 + "\nparent " + id2 + "\nauthor A <a> 1790000000 +0200\ngpgsig x\n parent y\n\nsubject\n\nbody\n"
	f.Add([]byte(id1 + " commit 120\n" + object + "\nabc missing\nde ambiguous\n" + id2 + " blob 1\nx\n"))
	f.Add([]byte(id1 + " commit 99999999999999999999\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		commits, err := parseObjects(b)
		if err != nil {
			return
		}
		for id, c := range commits {
			if c.id != id || !fullPattern().MatchString(id) || !utf8.ValidString(c.subject()) || strings.Contains(c.subject(), "\n") {
				t.Errorf("commit %q: %+v", id, c)
			}
			m := readMention(c)
			m.undoes(id, c.subject())
			m.undoesTitle(c.subject())
		}
	})
}

func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(id1 + "\x00:100644 100644 " + id1 + " " + id2 + " M\x00a\x00:000000 100644 x y A\x00b\x00" + id2 + "\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		touched, err := parseRaw(b)
		if err != nil {
			return
		}
		for id, files := range touched {
			if !fullPattern().MatchString(id) || len(files) == 0 {
				t.Errorf("commit %q, files %q", id, files)
			}
		}
	})
}

func FuzzParsePatchIDs(f *testing.F) {
	f.Add([]byte(id1 + " " + id2 + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids, err := parsePatchIDs(b)
		for commit, patch := range ids {
			if err == nil && (!fullPattern().MatchString(commit) || !fullPattern().MatchString(patch)) {
				t.Errorf("%q of %q", patch, commit)
			}
		}
	})
}

func TestReadMention(t *testing.T) {
	for message, want := range map[string]mention{
		"x\n\nThis reverts commit " + id1 + ".":                              {reverts: []string{id1}},
		"x\n\nThis reverts commit " + id1 + ", reversing\nchanges made to b": {reverts: []string{id1}},
		"x\n\nThis reverts\ncommit 1234567 (subject, 2026-01-01).":           {reverts: []string{"1234567"}},
		"x\n\nthis reverts commits 1234567, 89abcde and 1111111.":            {reverts: []string{"1234567", "89abcde", "1111111"}},
		"Reland \"x\"\n\n> This reverts commit 1234567.":                     {titled: "x"},
		"x\n\nThis partially reverts commit 1234567.":                        {other: []string{"1234567"}},
		"Revert \"a \"b\" c\"\n\nas it broke":                                {titled: `a "b" c`},
		"Reapply \"a\" (#12)":                                                {titled: "a"},
		"x\n\n(cherry picked from commit " + id1 + ")":                       {picked: []string{id1}},
		"x\n\n see (cherry picked from commit " + id1 + ")":                  {},
		"irreverts commit 1234567":                                           {},
		"This reverts commit 123456":                                         {},
		"Reverting \"a":                                                      {},
	} {
		got := readMention(&commit{message: message})
		got.undoing = ""
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(mention{})); diff != "" {
			t.Errorf("%q: %s", message, diff)
		}
	}
}

func TestMentionAbout(t *testing.T) {
	for _, c := range []struct {
		titled, subject string
		want            bool
	}{
		{"a", "a", true},
		{"a (#1)", "a", true},
		{"a", "a (#1)", true},
		{`Revert "a (#1)" (#2)`, "a", true},
		{"a b", "a", false},
		{"", "", false},
		{"b", "a", false},
	} {
		if got := (mention{titled: c.titled}).about(c.subject); got != c.want {
			t.Errorf("%q about %q: %v", c.titled, c.subject, got)
		}
	}
}

func TestAuthorDate(t *testing.T) {
	for in, want := range map[string]string{
		"A <a> 1790000000 +0200":   "2026-09-21T16:13:20+02:00",
		"A > B <a> 0 -0330":        "1969-12-31T20:30:00-03:30",
		"A <a> 1 +9999":            "",
		"A <a> 99999999999999 +00": "",
		"A <a>":                    "",
		"":                         "",
	} {
		if got := authorDate(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// The environment of git holds nothing that leads to another repository.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "HOME=/h", "GIT_DIR=x", "GIT_OBJECT_DIRECTORY=x", "GIT_CONFIG_GLOBAL=/c", "LC_MESSAGES=de", "LANGUAGE=de", "GIT_EXEC_PATH=/e"})
	want := []string{"PATH=/bin", "HOME=/h", "GIT_CONFIG_GLOBAL=/c", "GIT_EXEC_PATH=/e"}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Error(diff)
	}
}
