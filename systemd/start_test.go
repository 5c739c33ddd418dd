package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// startOf works out the commands of a unit file with one ExecStart=.
func startOf(t *testing.T, value string) *Settings {
	t.Helper()
	file, err := ParseFile("a.service", []byte("[Service]\nType=oneshot\nExecStart="+value+"\nEnvironment=AFTER=1\n"))
	if err != nil {
		t.Fatal(err)
	}
	return Effective([]*File{file}, ReadEnvironmentFiles, Specifiers{'h': "/home/ai", 'i': "", 'f': badSpecifier})
}

func TestStart(t *testing.T) {
	type command struct {
		Prefix, Path string
		Argv         []string
	}
	one := func(prefix, path string, argv ...string) []command { return []command{{prefix, path, argv}} }
	tests := []struct {
		value string
		want  []command
		bad   bool // the unit does not start
	}{
		{"/bin/x a", one("", "/bin/x", "/bin/x", "a"), false},
		{"/bin//./x/../y", one("", "/bin/x/../y", "/bin//./x/../y"), false},
		{"x", one("", "x", "x"), false},
		{"-/bin/x", one("-", "/bin/x", "/bin/x"), false},
		{`"-/bin/x y"`, one("-", "/bin/x y", "/bin/x y"), false},
		{"@/bin/x name a", one("@", "/bin/x", "name", "a"), false},
		{"-@:+/bin/x name", one("-@:+", "/bin/x", "name"), false},
		{"!!/bin/x", one("!!", "/bin/x", "/bin/x"), false},
		{"!!!/bin/x", nil, true},
		{"+!/bin/x", nil, true},
		{"--/bin/x", nil, false},
		{"::/bin/x", nil, true},
		{"%h/x %i a%%b 50%", one("", "/home/ai/x", "/home/ai/x", "", "a%b", "50%"), false},
		{"/bin/x %4", nil, true},
		{"/bin/x %f", nil, true},
		{"-/bin/x %4", nil, false},
		{"-%f", nil, false},
		{"/bin/x 'a", nil, true},
		{"-/bin/x 'a", nil, false},
		{"'/bin/x", nil, false},
		{`/bin/x \q \x20`, one("", "/bin/x", "/bin/x", `\q`, " "), false},
		{`/bin/x \; ";" a;b`, one("", "/bin/x", "/bin/x", ";", ";", "a;b"), false},
		{"/bin/x a ; -y b", []command{{"", "/bin/x", []string{"/bin/x", "a"}}, {"-", "y", []string{"y", "b"}}}, false},
		{"/bin/x ; /bin/", one("", "/bin/x", "/bin/x"), true},
		{"; ; /bin/x ;", one("", "/bin/x", "/bin/x"), false},
		{"@/bin/x", nil, true},
		{"-@/bin/x", nil, false},
		{"bin/x", nil, true},
		{"-", nil, false},
		{"..", nil, true},
		{"/bin/", nil, true},
		{`""`, nil, true},
		{`/bin/x\x22`, nil, true},
		{"/" + strings.Repeat("x", 256), nil, true},
		{"$A b", one("", "$A", "$A", "b"), false},
	}
	for _, test := range tests {
		s := startOf(t, test.value)
		var got []command
		for _, c := range s.Start() {
			if c.File != "a.service" || c.Line != 3 || c.Value != test.value || c.Unsure != "" {
				t.Errorf("%s: %+v", test.value, c)
			}
			got = append(got, command{c.Prefix, c.Path, c.Argv})
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.value, diff)
		}
		why, _ := s.Refused()
		if bad := strings.Contains(why, "bad ExecStart="); bad != test.bad {
			t.Errorf("%s: refused %q", test.value, why)
		}
		if _, after := s.Environment()["AFTER"]; after == test.bad {
			t.Errorf("%s: the line after it counts: %v", test.value, after)
		}
	}
}

func TestStartResets(t *testing.T) {
	s := settingsOf(t, nil, "ExecStart=/bin/a\nExecStop=/bin/s\n", "ExecStart=\nExecStart=/bin/b\n", "ExecStart=/bin/c %4\nExecStart=/bin/lost\n",
		"ExecStart=/bin/d\n")
	var got []string
	for _, c := range s.Start() {
		got = append(got, c.File+" "+c.Path)
	}
	if diff := cmp.Diff([]string{"f1 /bin/b", "f3 /bin/d"}, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if values := s.Values("Service", "ExecStart"); len(values) != 2 {
		t.Errorf("the lines that count are %v", values)
	}
}

func TestCandidates(t *testing.T) {
	if got := (StartCommand{Path: "/opt/x"}).Candidates(); !cmp.Equal(got, []string{"/opt/x"}) {
		t.Errorf("candidates of a path: %q", got)
	}
	if got := (StartCommand{Path: "x"}).Candidates(); len(got) != 6 || got[0] != "/usr/local/sbin/x" || got[3] != "/usr/bin/x" {
		t.Errorf("candidates of a name: %q", got)
	}
}

// TestUnsure: whatever depends on a version or on what is not known here is marked, and what may
// be lost because of it too.
func TestUnsure(t *testing.T) {
	for _, value := range []string{"/bin/x %k", "/bin/x %H", "%k/x", "|/bin/x", "/bin/x " + strings.Repeat("x", 4096), "/bin/.", "/bin/.."} {
		s := startOf(t, value)
		if len(s.Start()) != 1 || s.Start()[0].Unsure == "" {
			t.Errorf("%s: %+v", value, s.Start())
		}
		if why, unsure := s.Refused(); why != "" || unsure == "" {
			t.Errorf("%s: refused %q, unsure %q", value, why, unsure)
		}
		if _, unsure := s.Argv(s.Start()[0], nil); unsure == "" {
			t.Errorf("%s: its argv is certain", value)
		}
	}

	// A line that one systemd drops with all after it, and another takes.
	s := settingsOf(t, map[string]string{"/e": "E=1\n"}, "EnvironmentFile=/e\nUnsetEnvironment=U\nEnvironment=U=1 A=1\nExecStart=/bin/x\nType=exec\n",
		"Environment=B=1\nExecReload=/bin/x %k\nEnvironment=C=1\nEnvironment=\nUnsetEnvironment=\nExecStart=\nExecStart=/bin/y\nType=notify\nRestart=\n",
		"Environment=D=1\n")
	unsure := func(key string, want bool) {
		t.Helper()
		if setting, ok := s.Environment()[key]; !ok || (setting.Unsure != "") != want {
			t.Errorf("%s is %+v (set: %v), unsure should be %v", key, setting, ok, want)
		}
	}
	unsure("A", true)
	unsure("B", true)
	unsure("C", true)
	unsure("U", true)
	unsure("D", false)
	unsure("E", false)
	for _, c := range s.Start() {
		if c.Unsure == "" {
			t.Errorf("%s is certain", c.Path)
		}
	}
	if kind := s.Last("Service", "Type"); kind.Unsure == "" || kind.Line.Value != "notify" {
		t.Errorf("Type= is %+v", kind)
	}
	// What a variable is that no file sets, where others may set it.
	for text, want := range map[string]bool{"": false, "PAMName=login\n": true, "EnvironmentFile=/denied\n": true} {
		s := settingsOf(t, map[string]string{"/denied": "denied"}, text)
		if _, unsure := s.Argv(StartCommand{Argv: []string{"x", "$NONE"}}, map[string]string{}); (unsure != "") != want {
			t.Errorf("%q: unsure %q", text, unsure)
		}
	}
	for text, want := range map[string]bool{"ExecStart=x\n": true, "ExecStart=/bin/x\n": false, "ExecStart=x\nExecSearchPath=\n": false} {
		s := settingsOf(t, nil, "ExecSearchPath=/opt/bin\n"+text)
		if unsure := s.Start()[0].Unsure; (unsure != "") != want {
			t.Errorf("%q: unsure %q", text, unsure)
		}
	}
	// With a "-" only the line itself is at stake.
	s = settingsOf(t, nil, "ExecReload=-/bin/x %k\nEnvironment=C=1\n")
	unsure("C", false)
}

// FuzzParseCommands: no bytes upset the reader, a word of systemd's own is one again, and every
// command has a process name.
func FuzzParseCommands(f *testing.F) {
	for _, seed := range []string{"/bin/x a", `@-"/bin/x" 'n' $A ; y \; z`, "/bin/x %h%k%4%", `\x2fbin \q "`, ";;;", "-", "|x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		commands, bad := parseCommands(value, Specifiers{'h': "/home/a b"})
		for _, c := range commands {
			if len(c.Argv) == 0 || c.Path == "" && c.Unsure == "" {
				t.Errorf("%q: %+v", value, c)
			}
			var raw []string
			for _, word := range c.Words {
				raw = append(raw, word.Raw)
			}
			again, badAgain := parseCommands(strings.Join(raw, " "), Specifiers{'h': "/home/a b"})
			if badAgain != nil || len(again) != 1 || !cmp.Equal(again[0].Argv, c.Argv) {
				t.Errorf("%q: written again it is %v (%v), not %q", value, again, badAgain, c.Argv)
			}
			(&Settings{}).Argv(c, nil)
		}
		if bad != nil && bad.what == "" {
			t.Errorf("%q: an error without a reason", value)
		}
	})
}
