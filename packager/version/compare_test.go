package version

import (
	"errors"
	"strings"
	"testing"
)

// lines holds one line a row: tags that rise from left to right by "<", that
// share a rank by "=", and that have no order by "?".
var lines = []string{
	// Builds by number, and a project that went on with small numbers.
	"b990 < b9999 < b10000 < b10234 < b10621",
	"B9999 = b9999",
	"b10234 < b10234-3-gfeedbee < b10472",
	"b6123-rc1 < b6123",
	"b1999 < b2000 < b2026 < b12345678",
	"v0.3.0 < v0.3.1",
	"v0.3.0 ? b10621", "b990 ? v0.3.1",
	"master-0f1e2d3 ? b10621", "b1-0abc123 ? b990", "gguf-v0.9 ? b990", "gguf-v0.9 ? v0.3.0",
	"0f1e2d3 ? b990", "1234567 ? 12345", "master-1234567 ? master-2345678", "nightly ? v1.0",
	"b10472-mix-0a1b2c3 ? b10472", "b10472-mix-0a1b2c3 ? b10473",
	"b10472-mix-0a1b2c3 < b10473-mix-0000000", "b10472-mix-0a1b2c3 ? b10472-mix-0000000",
	"b6123-cuda ? b6122", "b6123-cuda < b6124-cuda",
	// Calendars.
	"v2025.53 < v2026.9 < v2026.40 < v2026.40.1 < v2026.41 < v2027.1",
	"2025.11.1 < 2026.02.0 < v2026.04.22 < v2026.04.22.3 < v2026.5 < v2026.0123.0",
	"v2026.040 = v2026.40 = 2026.40 = V2026.40.0",
	"release_20260513.0 ? v2026.40", "v26.8.0 ? v2026.40", "release_20260513.0 < release_20260514.0",
	"release_20260513.0 ? v26.8.0", "release_3.0 ? release_20260513.0",
	"v2026.40-1 < v2026.40-alpha < v2026.40 < v2026.40.1",
	// git describe.
	"v2026.40-rc.1 < v2026.40-rc.1-3-gc0ffee1 < v2026.40 = v2026.40-0-gabc1234 < v2026.40-5-gfeedbee < v2026.40-12-gdeadbee < v2026.41",
	"v2026.40-12-gdeadbee = v2026.40-12-gdeadbee-dirty", "v2026.40 = v2026.40-dirty",
	"v2026.40-5-gfeedbee = v2026.40-5-gc0ffee1",
	"v2026.40-3-gamma < v2026.40", "v2026.40-3-gabba ? v2026.40", "v2026.40-3-gabba-dirty ? v2026.40", "v2026.40-3-gabcdef ? v2026.40",
	"v2026.40-3-gabbaabba-5-gfeedbee ? v2026.40",
	"0.2.20240330-193452-h12345678 < 0.2.20240426-145232+9abcdef0",
	"v2026.40+rocm7 = v2026.40+vulkan = v2026.40", "v2026.40-5-gfeedbee+rocm7 = v2026.40+rocm7-5-gfeedbee",
	"v2026.40+rocm7-dirty = v2026.40-dirty+rocm7",
	"v2026.40-0abc123 ? v2026.40", "v2026.40-rc.1-0abc123-5-gfeedbee ? v2026.40",
	// Before a release.
	"1.0.0-rc1 < 1.0.0-rc2 < 1.0.0-rc9 < 1.0.0-rc10 < 1.0.0",
	"1.0.0-rc.3 < 1.0.0-rc.4 < 1.0.0-rc.10 < 1.0.0",
	"1.0.0-alpha5 < 1.0.0-beta < 1.0.0-rc < 1.0.0-rc1 < 1.0.0-RC2 < 1.0.0-rc9 < 1.0.0-rc.10 < 1.0.0",
	"1.0.0-rc4 = 1.0.0-rc.4 = 1.0.0-RC04 = 1.0.0rc4 = 1.0.0.rc4 = 1.0-rc-4",
	"1.0.0-rc3 < 1.0.0-rc.4",
	// What nobody knows.
	"1.0.0p1 ? 1.0.0", "1.0.0.post1 ? 1.0.0", "v1.0- ? v1.0", "1234567890123456789.0 ? 1.0", "v1-rc1234567890123456789 ? v1",
}

func TestCompare(t *testing.T) {
	for _, line := range lines {
		word := strings.Fields(line)
		for i := 0; i < len(word); i += 2 {
			for j := i; j < len(word); j += 2 {
				want := "="
				for _, op := range word[i:j] {
					if op == "<" || op == "?" {
						want = op
					}
				}
				check(t, word[i], word[j], want)
			}
		}
	}
}

func check(t *testing.T, from, to, want string) {
	t.Helper()
	a, b := parse(t, from), parse(t, to)
	up, errUp := Compare(a, b)
	down, errDown := Compare(b, a)
	if errors.Is(errUp, ErrNotComparable) != (want == "?") || errors.Is(errDown, ErrNotComparable) != (want == "?") || up != -down {
		t.Errorf("%s and %s: %d (%v), turned round %d (%v), want %s", from, to, up, errUp, down, errDown, want)
		return
	}
	if want == "?" {
		return
	}
	if got := map[int]string{-1: "<", 0: "=", 1: ">"}[up]; got != want {
		t.Errorf("%s %s %s, want %s", from, got, to, want)
	}
}

func parse(t *testing.T, s string) Tag {
	t.Helper()
	tag, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	if tag.String() != s {
		t.Errorf("%q is spelled %q", s, tag)
	}
	return tag
}

func TestSources(t *testing.T) {
	upstream, repack := parse(t, "b7814").Of("ggml-org/llama.cpp"), parse(t, "b1164").Of("someone/repack")
	if _, err := Compare(upstream, repack); !errors.Is(err, ErrNotComparable) {
		t.Errorf("tags of two repositories compare: %v", err)
	}
	if c, err := Compare(upstream, parse(t, "b1164").Of("ggml-org/llama.cpp")); c != 1 || err != nil {
		t.Errorf("got %d, %v", c, err)
	}
	if _, err := Compare(Tag{}, upstream); !errors.Is(err, ErrNotComparable) {
		t.Errorf("a zero tag compares: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range [][3]string{
		{"v2026.40", "v2026.41", Newer},
		{"v2026.41", "v2026.40", Older},
		{"v2026.40", "v2026.40", SameTag},
		{"v2026.40", "v2026.040", SameRank},
		{"v2026.40+rocm7", "v2026.40+vulkan", SameRank},
		{"b6123", "v0.3.0", NotComparable},
		{"", "v0.3.0", NotComparable},
	} {
		if got := Describe(c[0], c[1]); got != c[2] {
			t.Errorf("%s to %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

func FuzzCompare(f *testing.F) {
	for _, line := range lines {
		word := strings.Fields(line)
		f.Add(word[0], word[2], word[len(word)-1])
	}
	f.Fuzz(func(t *testing.T, x, y, z string) {
		var tags [3]Tag
		for i, s := range []string{x, y, z} {
			tag, err := Parse(s)
			if err != nil {
				return
			}
			if again, err := Parse(tag.String()); err != nil || again.String() != s || again.Series() != tag.Series() {
				t.Fatalf("%q is read again as %q of %q: %v", s, again, again.Series(), err)
			}
			if (tag.Series() == "") != (tag.Reason() != "") {
				t.Fatalf("%q is of the series %q, reason %q", s, tag.Series(), tag.Reason())
			}
			if c, err := Compare(tag, tag); c != 0 || err != nil {
				t.Fatalf("%q is not itself: %d, %v", s, c, err)
			}
			tag.Describe()
			tags[i] = tag
		}
		a, b, c := tags[0], tags[1], tags[2]
		ab, errAB := Compare(a, b)
		ba, errBA := Compare(b, a)
		if ab != -ba || (errAB == nil) != (errBA == nil) {
			t.Fatalf("%q and %q: %d (%v), turned round %d (%v)", x, y, ab, errAB, ba, errBA)
		}
		bc, errBC := Compare(b, c)
		ac, errAC := Compare(a, c)
		if errAB != nil || errBC != nil || errAC != nil {
			return
		}
		if ab <= 0 && bc <= 0 && (ac > 0 || ac == 0 && ab+bc < 0) || ab >= 0 && bc >= 0 && (ac < 0 || ac == 0 && ab+bc > 0) {
			t.Fatalf("%q to %q is %d, that to %q %d, and the first to the last %d", x, y, ab, z, bc, ac)
		}
	})
}
