package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestNative(t *testing.T) {
	for tag, want := range map[string][3]string{
		"v2026.44":                   {"2026.44", "2026.44", "2026.44"},
		"2026.44":                    {"2026.44", "2026.44", "2026.44"},
		"v2026.44.1":                 {"2026.44.1", "2026.44.1", "2026.44.1"},
		"v2026.04.22.3":              {"2026.04.22.3", "2026.04.22.3", "2026.04.22.3"},
		"v2026.44-rc.1":              {"2026.44~rc.1", "2026.44~rc.1", "2026.44rc.1"},
		"v2026.44-RC1":               {"2026.44~rc.1", "2026.44~rc.1", "2026.44rc.1"},
		"v2026.44-rc":                {"2026.44~rc", "2026.44~rc", "2026.44rc"},
		"v2026.44-1":                 {"2026.44~1", "2026.44~a.1", "2026.44a.1"},
		"v2026.44rc1":                {"2026.44~rc.1", "2026.44~rc.1", "2026.44rc.1"},
		"engine/v2026.44":            {"0+engine.v2026.44", "0+engine.v2026.44", "0+engine.v2026.44"},
		"v2026.40-5-gfeedbee":        {"2026.40+5.gfeedbee", "2026.40.0.0+5.gfeedbee", "2026.40.0.0+5.gfeedbee"},
		"v2026.40-0-gabc1234":        {"2026.40", "2026.40", "2026.40"},
		"v2026.40-5-gfeedbee-dirty":  {"2026.40+5.gfeedbee.dirty", "2026.40.0.0+5.gfeedbee.dirty", "2026.40.0.0+5.gfeedbee.dirty"},
		"v2026.40-rc.1-3-gc0ffee1":   {"2026.40~rc.1+3.gc0ffee1", "2026.40~rc.1+3.gc0ffee1", "2026.40rc.1+3.gc0ffee1"},
		"v2026.40+rocm7":             {"2026.40+rocm7", "2026.40+rocm7", "2026.40+rocm7"},
		"v2026.40-rc.2+rocm-7.14":    {"2026.40~rc.2+rocm.7.14", "2026.40~rc.2+rocm.7.14", "2026.40rc.2+rocm.7.14"},
		"b6123":                      {"0+b6123", "0+b6123", "0+b6123"},
		"b10472-mix-0a1b2c3":         {"0+b10472.mix.0a1b2c3", "0+b10472.mix.0a1b2c3", "0+b10472.mix.0a1b2c3"},
		"release_20260513.0":         {"0+release.20260513.0", "0+release.20260513.0", "0+release.20260513.0"},
		"0.2.20240426-145232+9abcde": {"0.2.20240426~145232+9abcde", "0.2.20240426~a.145232+9abcde", "0.2.20240426a.145232+9abcde"},
	} {
		var got [3]string
		for i, f := range []func(string) (string, error){Deb, RPM, Arch} {
			var err error
			if got[i], err = f(tag); err != nil {
				t.Errorf("%s: %v", tag, err)
			}
		}
		if got != want {
			t.Errorf("%s: got %v, want %v", tag, got, want)
		}
	}
	for _, tag := range []string{"", "v2026.44 rc", "-1", "a:b", "v2026.44~rc.1", "é", strings.Repeat("1", 129)} {
		if got, err := Deb(tag); err == nil {
			t.Errorf("%q gives %q", tag, got)
		}
	}
}

// ordered lists tags from the oldest to the newest.
var ordered = [][]string{
	{
		"b990", "b9999", "b10000", "b10234", "b10234-3-gfeedbee", "b10472", "b10472-mix-0a1b2c3", "b10473",
		"v0.3.0", "v0.3.1", "v2025.53", "v2026.9",
		"v2026.40-alpha5", "v2026.40-beta.2", "v2026.40-rc", "v2026.40-rc1", "v2026.40-rc.1-3-gc0ffee1", "v2026.40-RC2", "v2026.40-rc.9",
		"v2026.40-rc10", "v2026.40", "v2026.40-5-gfeedbee", "v2026.40-12-gdeadbee", "v2026.40.1", "v2026.40.1-2-gfeedbee", "v2026.40.2",
		"v2026.41-rc.1", "v2026.41", "v2027.1",
	},
	{"v2026.40-rc.1", "v2026.40-rc.1+rocm7", "v2026.40", "v2026.40+rocm7", "v2026.40.1"},
	{"v2026.04.22", "v2026.04.22-9-gfeedbee", "v2026.04.22.3", "v2026.04.22.3-1-gfeedbee", "v2026.5.1"},
	{"b6123", "v0.0.1-rc.1", "v0.0.1"},
	{"v2026.40-1", "v2026.40-alpha", "v2026.40-rc.1", "v2026.40"},
}

// The native order is the one that [Compare] knows, where it knows one.
func TestNativeOrderIsOurs(t *testing.T) {
	compared := 0
	for _, tags := range ordered {
		for i := range tags {
			for j := i + 1; j < len(tags); j++ {
				a, err := Parse(tags[i])
				if err != nil {
					t.Fatal(err)
				}
				b, err := Parse(tags[j])
				if err != nil {
					t.Fatal(err)
				}
				c, err := Compare(a, b)
				if err != nil {
					continue // the package managers must put them somewhere
				}
				if compared++; c > 0 || c == 0 && a.build == b.build {
					t.Errorf("%s and %s: %d", a, b, c)
				}
			}
		}
	}
	if compared < 200 {
		t.Errorf("only %d pairs are comparable", compared)
	}
}

// TestNativeOrder asks the package managers themselves.
func TestNativeOrder(t *testing.T) {
	for _, manager := range []struct {
		name    string
		version func(string) (string, error)
		less    func(t *testing.T, pairs [][2]string) []bool
	}{
		{"dpkg", Deb, dpkgLess}, {"rpm", RPM, rpmLess}, {"pacman", Arch, pacmanLess},
	} {
		t.Run(manager.name, func(t *testing.T) {
			if _, err := exec.LookPath(manager.name); err != nil {
				if os.Getenv("ONEBIT_CI") != "" {
					t.Fatal(err)
				}
				t.Skipf("no %s to ask: run internal/demo/setup.sh", manager.name)
			}
			var pairs [][2]string
			for _, tags := range ordered {
				for i := range tags {
					for j := i + 1; j < len(tags); j++ {
						a, err := manager.version(tags[i])
						if err != nil {
							t.Fatal(err)
						}
						b, err := manager.version(tags[j])
						if err != nil {
							t.Fatal(err)
						}
						pairs = append(pairs, [2]string{a, b})
					}
				}
			}
			for i, less := range manager.less(t, pairs) {
				if !less {
					t.Errorf("%s: %s is not before %s", manager.name, pairs[i][0], pairs[i][1])
				}
			}
		})
	}
}

func dpkgLess(t *testing.T, pairs [][2]string) []bool {
	var out []bool
	for _, p := range pairs {
		out = append(out, exec.Command("dpkg", "--compare-versions", p[0], "lt", p[1]).Run() == nil)
	}
	return out
}

func rpmLess(t *testing.T, pairs [][2]string) []bool {
	var out []bool
	for _, p := range pairs {
		b, err := exec.Command("rpm", "--eval", `%{lua:print(rpm.vercmp("`+p[0]+`", "`+p[1]+`"))}`).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		out = append(out, strings.TrimSpace(string(b)) == "-1")
	}
	return out
}

// pacmanLess gives pacman a database in which every version is installed
// under a name of its own, and asks it for one that is newer.
func pacmanLess(t *testing.T, pairs [][2]string) []bool {
	db := t.TempDir()
	names := map[string]string{}
	args := []string{"--dbpath", db, "--config", "/dev/null", "-T"}
	for _, p := range pairs {
		name := names[p[0]]
		if name == "" {
			name = "p" + regexp.MustCompile(`[^0-9a-z]`).ReplaceAllString(p[0], "_")
			names[p[0]] = name
			dir := filepath.Join(db, "local", name+"-"+p[0]+"-1")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"desc": "%NAME%\n" + name + "\n\n%VERSION%\n" + p[0] + "-1\n\n", "files": "%FILES%\n\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		args = append(args, name+"<"+p[1]+"-1")
	}
	if err := os.WriteFile(filepath.Join(db, "local", "ALPM_DB_VERSION"), []byte("9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// It prints what is not satisfied, and fails if there is any.
	b, err := exec.Command("pacman", args...).CombinedOutput()
	if err != nil && len(b) == 0 {
		t.Fatalf("pacman: %v", err)
	}
	missing := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		missing[strings.TrimSpace(line)] = true
	}
	var out []bool
	for _, p := range pairs {
		out = append(out, !missing[names[p[0]]+"<"+p[1]+"-1"])
	}
	return out
}

func FuzzNative(f *testing.F) {
	for _, tags := range ordered {
		for _, tag := range tags {
			f.Add(tag)
		}
	}
	good := regexp.MustCompile(`^[0-9][0-9A-Za-z.+~]*$`)
	f.Fuzz(func(t *testing.T, tag string) {
		for _, map1 := range []func(string) (string, error){Deb, RPM, Arch} {
			if got, err := map1(tag); err == nil && !good.MatchString(got) {
				t.Errorf("%q gives %q", tag, got)
			}
		}
	})
}
