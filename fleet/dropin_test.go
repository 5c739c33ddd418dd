package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/systemd"
)

func sampleDropIn() *DropIn {
	return &DropIn{
		Unit: `llm@gpu\x2d0.service`,
		Environment: []Assignment{
			{"LD_LIBRARY_PATH", "/p q/1bit-hrx-b/lib:/usr/lib"},
			{"ONEBIT_LLAMA_SERVER", `/home/a"i\/100%/1bit-hrx-b/hrx/llama/bin/llama-server`},
		},
		Package: PackageRef{"hrx-b", "sha256:bb", "/p q/1bit-hrx-b"}, Act: actSwitch, Generation: 7, By: "ai",
		At:           time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC),
		ServedBefore: PackageRef{"hrx-a", "", "/p q/1bit-hrx-a"}, RolledBackFrom: PackageRef{"hrx-c", "sha256:cc", "/c"},
		Rollback: rollbackExchange,
		Blocks:   []Block{{"hrx-c", "sha256:cc", "exited with status 1: \"no\\\nsuch\" device\\"}, {"hrx-d", "", ""}},
		Start:    []string{`/usr/bin/env "${ONEBIT_LLAMA_SERVER}" -m "%h/a b.gguf"`},
		Adopted:  []Origin{{`/p q/llm@gpu\x2d0.service`, 12, "ab"}, {"/b", 1, "cd"}},
		Lifted:   true,
		Extra:    []string{"X-Hold=somebody said so"},
	}
}

func TestDropInRoundTrip(t *testing.T) {
	want := sampleDropIn()
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDropIn(data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s\n%s", diff, data)
	}
}

// systemd must read the variables that we wrote and pass over everything else in the file without a word.
func TestDropInAsSystemdReadsIt(t *testing.T) {
	d := sampleDropIn()
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file, err := systemd.ParseFile("/x/zz-1bit.conf", data)
	if err != nil {
		t.Fatal(err)
	}
	s := systemd.Effective([]*systemd.File{file}, systemd.ReadEnvironmentFiles, nil)
	if len(s.Problems) > 0 {
		t.Errorf("problems %v", s.Problems)
	}
	env := s.Environment()
	if len(env) != len(d.Environment) {
		t.Errorf("%d variables, want %d", len(env), len(d.Environment))
	}
	for _, a := range d.Environment {
		if got := env[a.Key]; got.Value != a.Value || got.Unsure != "" {
			t.Errorf("%s is %q (%s), want %q", a.Key, got.Value, got.Unsure, a.Value)
		}
	}
	for _, line := range file.Lines {
		if line.Section != "Service" && !strings.HasPrefix(line.Section, "X-") {
			t.Errorf("line %d is in section %q, which systemd would report", line.Number, line.Section)
		}
	}
}

func TestDropInEdited(t *testing.T) {
	data, err := sampleDropIn().Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, edited := range map[string]string{
		"a line of a person's": strings.Replace(text, "[Service]\n", "[Service]\nNice=5\n", 1),
		"another section":      text + "[Unit]\n",
		"an unquoted variable": strings.Replace(text, "[Service]\n", "[Service]\nEnvironment=A=1\n", 1),
		"two in one line":      strings.Replace(text, "[Service]\n", "[Service]\nEnvironment=\"A=1\" \"B=2\"\n", 1),
		"twice":                strings.Replace(text, "[Service]\n", "[Service]\nEnvironment=\"LD_LIBRARY_PATH=1\"\n", 1),
		"no package":           dropLine(text, "Package="),
		"no generation":        dropLine(text, "Generation="),
		"no way back":          dropLine(text, "Rollback="),
		"key twice":            text + "By=x\n",
		"bad time":             strings.Replace(text, "At=2026", "At=x2026", 1),
		"torn":                 text[:len(text)/2],
		"empty":                "",
		"zeros":                strings.Repeat("\x00", 80),
		"windows":              strings.ReplaceAll(text, "\n", "\r\n"),
		"a setting at the end": text + "Environment=MINE=1\n",
		"a comment":            strings.Replace(text, "[Service]\n", "[Service]\n# mine\n", 1),
		"a comment above":      "; mine\n" + text,
	} {
		if d, err := DecodeDropIn([]byte(edited)); !errors.Is(err, errNotOurs) {
			t.Errorf("%s: read as %+v with error %v", name, d, err)
		}
	}
}

// What our section says can be read whatever a person has put around it; the first such line is named.
func TestReadDropInEdited(t *testing.T) {
	want := sampleDropIn()
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, tt := range map[string]struct{ text, edited string }{
		"as we write it":  {text, ""},
		"a setting":       {strings.Replace(text, "[Service]\n", "[Service]\nNice=5\n", 1), "line 5: Nice= is not ours"},
		"a comment":       {strings.Replace(text, "[Service]\n", "[Service]\n# why\n", 1), `line 5: a comment of somebody's ("# why")`},
		"two lines":       {"[Unit]\nAfter=x\n" + text, "line 1: an unknown"},
		"a setting last":  {text + "Environment=MINE=1\n", "Environment= is not ours, and has no effect in [X-1bit]"},
		"a section last":  {text + "\n[Unit]\nPackage=x y z\n", "an unknown"},
		"our own again":   {text + "[X-1bit]\nPackage=x y z\n", "repeated section"},
		"a key again":     {text + "Package=x y z\n", "a repeated key"},
		"a variable":      {strings.Replace(text, "\n\n[X", "\nEnvironment=A=1\n\n[X", 1), "without quotes"},
		"a variable of 2": {strings.Replace(text, "\n\n[X", "\nEnvironment=\"LD_LIBRARY_PATH=1\"\n\n[X", 1), "set twice"},
	} {
		got, edited, err := readDropIn([]byte(tt.text))
		if err != nil || (edited == nil) != (tt.edited == "") || !strings.Contains(errText(edited), tt.edited) {
			t.Errorf("%s: edited %v, error %v", name, edited, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, err := DecodeDropIn([]byte(tt.text)); (err == nil) != (tt.edited == "") {
			t.Errorf("%s: as a file to be replaced: %v", name, err)
		}
	}
}

func TestWithBlock(t *testing.T) {
	d := ourFile("b", "a", rollbackRemove)
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"as we write it": string(data),
		"edited":         strings.Replace(string(data), "[Service]\n", "[Service]\nNice=5\n", 1) + "[Unit]\nAfter=x\n",
	} {
		out := withBlock(withBlock([]byte(text), ref("b"), "one"), ref("b"), `two "words"`)
		got, _, err := readDropIn(out)
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := blocked(got.Blocks, ref("b")); !ok || b.Reason != `two "words"` {
			t.Errorf("%s: blocks %v", name, got.Blocks)
		}
		for line := range strings.Lines(text) {
			if !strings.Contains(string(out), line) {
				t.Errorf("%s: lost %q", name, line)
			}
		}
	}
}

func dropLine(text, start string) string {
	var out []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, start) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func FuzzDecodeDropIn(f *testing.F) {
	data, err := sampleDropIn().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("[Service]\nEnvironment=\"A=1\"\n[X-1bit]\nPackage=a \"\" /a\nGeneration=1\nRollback=remove\nBlocked=a b \"c\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := DecodeDropIn(data)
		if err != nil {
			return
		}
		// A line of a person's in front changes nothing of what is read.
		read, edited, err := readDropIn(append([]byte("Nice=5\n"), data...))
		if err != nil || edited == nil || !cmp.Equal(d, read) {
			t.Fatalf("with a line in front: %+v, edited %v, %v", read, edited, err)
		}
		again, err := d.Encode()
		if err != nil {
			return // a variable that we read and would not write
		}
		e, err := DecodeDropIn(again)
		if err != nil {
			t.Fatalf("%v in what we wrote:\n%s", err, again)
		}
		if diff := cmp.Diff(d, e); diff != "" {
			t.Fatalf("changed by writing (-read +again):\n%s", diff)
		}
	})
}

func FuzzQuoteAssignment(f *testing.F) {
	f.Add("A", `b"c\d%e f=g`)
	f.Fuzz(func(t *testing.T, key, value string) {
		q, err := systemd.QuoteAssignment(key, value)
		if err != nil {
			return
		}
		k, v, err := unquoteAssignment(q)
		if err != nil || k != key || v != value {
			t.Fatalf("%q %q written as %s reads %q %q %v", key, value, q, k, v, err)
		}
	})
}

func FuzzSplitFields(f *testing.F) {
	f.Add("a", "b c", "\"\\\n\x00é\u2028")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		line := quoteField(a) + " " + quoteField(b) + " " + quoteField(c)
		if strings.ContainsAny(line, "\n\r\x00") {
			t.Fatalf("%q would break the line", line)
		}
		got, err := splitFields(line)
		if err != nil {
			t.Fatal(err)
		}
		valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		if want := []string{valid(a), valid(b), valid(c)}; !cmp.Equal(got, want) {
			t.Fatalf("%q reads %q, want %q", line, got, want)
		}
	})
}
