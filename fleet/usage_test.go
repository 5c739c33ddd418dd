package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// machine is a folder that stands for a machine on which no manager answers.
type machine struct {
	*testing.T
	root string
	host *Host
}

const unitFolder = "home/ai/.config/systemd/user"

func newMachine(t *testing.T) *machine {
	m := &machine{T: t, root: t.TempDir()}
	data := m.path("home/ai/.local/share")
	m.host = &Host{
		Scope: systemd.ScopeUser, Store: store.Open(data, m.path("state")), UnitDir: m.path(unitFolder), Root: m.root,
		Connect: func(context.Context) (*systemd.Manager, error) { return nil, systemd.ErrNoBus },
	}
	for _, name := range []string{"a", "b", "c", "ab"} {
		m.mkdir("home/ai/.local/share/1bit-hrx-" + name)
	}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) mkdir(name string) {
	m.Helper()
	if err := os.MkdirAll(m.path(name), 0o755); err != nil {
		m.Fatal(err)
	}
}

// write writes a file. HOME in its text is the home folder.
func (m *machine) write(name, text string) {
	m.Helper()
	m.mkdir(filepath.Dir(name))
	text = strings.ReplaceAll(text, "HOME", m.path("home/ai"))
	if err := os.WriteFile(m.path(name), []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) link(target, name string) {
	m.Helper()
	m.mkdir(filepath.Dir(name))
	if err := os.Symlink(target, m.path(name)); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) ref(name string) PackageRef {
	return PackageRef{"hrx-" + name, "sha256:" + strings.Repeat(name[:1], 64), m.path("home/ai/.local/share/1bit-hrx-" + name)}
}

// dropIn is a file of ours for a package.
func (m *machine) dropIn(name string, change func(*DropIn)) string {
	m.Helper()
	ref := m.ref(name)
	d := &DropIn{
		Unit: "llm.service", Package: ref, Act: actSwitch, Generation: 2, At: time.Unix(0, 0), Rollback: rollbackExchange,
		Environment: []Assignment{{serverVariable, filepath.Join(ref.Path, "llama-server")}},
	}
	if change != nil {
		change(d)
	}
	data, err := d.Encode()
	if err != nil {
		m.Fatal(err)
	}
	return string(data)
}

// used lists the packages that are in use, by the letters that name them.
func (m *machine) used() string {
	m.Helper()
	u, err := m.host.Usage(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	var used []string
	for _, name := range []string{"a", "b", "c", "ab"} {
		ref := m.ref(name)
		if len(u.Of(&store.Package{Name: ref.Name, Digest: "sha256:another", Path: ref.Path})) > 0 {
			used = append(used, name)
		}
	}
	return strings.Join(used, " ")
}

func TestUsageOfFilesAlone(t *testing.T) {
	const ours = unitFolder + "/llm.service.d/"
	for name, c := range map[string]struct {
		tree func(*machine)
		want string
	}{
		"nothing": {func(m *machine) {}, ""},
		"a switch": {func(m *machine) {
			m.write(ours+dropInName, m.dropIn("a", func(d *DropIn) { d.ServedBefore = m.ref("b") }))
			m.write(ours+prevName, m.dropIn("b", func(d *DropIn) { d.RolledBackFrom = m.ref("a"); d.ServedBefore = m.ref("c") }))
		}, "a b c"},
		"a .prev of another switch": {func(m *machine) {
			m.write(ours+dropInName, m.dropIn("a", nil))
			m.write(ours+prevName, m.dropIn("b", func(d *DropIn) { d.Generation = 7 }))
		}, "a b"},
		"an instance": {func(m *machine) {
			m.write(unitFolder+"/inst@.service", "[Service]\nExecStart=/bin/true\n")
			m.write(unitFolder+"/inst@one.service.d/"+dropInName, m.dropIn("a", nil))
			m.write(unitFolder+"/inst@one.service.d/hrx.conf", "[Service]\nEnvironment=X=HOME/.local/share/1bit-hrx-b/x\n")
		}, "a b"},
		"rolled back: an undo returns to what was left": {func(m *machine) {
			m.write(ours+dropInName, m.dropIn("a", func(d *DropIn) { d.RolledBackFrom = m.ref("b") }))
			m.write(ours+prevName, m.dropIn("b", func(d *DropIn) { d.ServedBefore = m.ref("a") }))
		}, "a b"},
		"came back by itself: an undo returns to what failed": {func(m *machine) {
			m.write(ours+dropInName, m.dropIn("a", func(d *DropIn) { d.Act, d.RolledBackFrom = actReturn, m.ref("b") }))
			m.write(ours+prevName, m.dropIn("c", func(d *DropIn) { d.RolledBackFrom = m.ref("a") }))
		}, "a b c"},
		"rolled back after a first switch": {func(m *machine) {
			m.write(ours+prevName, m.dropIn("b", func(d *DropIn) { d.Rollback = rollbackRemove; d.block(m.ref("c"), "bad") }))
		}, "b"},
		"the active file is lost": {func(m *machine) {
			m.write(ours+prevName, m.dropIn("b", func(d *DropIn) { d.RolledBackFrom = m.ref("a") }))
		}, "b"},
		"a switch cut off": {func(m *machine) {
			m.write(ours+prevName, m.dropIn("a", nil))
			m.write(ours+nextName, m.dropIn("b", nil))
			m.write(ours+prevNextName, m.dropIn("c", nil))
		}, "a b c"},
		"edited by hand": {func(m *machine) {
			m.write(ours+dropInName, m.dropIn("a", func(d *DropIn) { d.ServedBefore = m.ref("b") })+"[Service]\nNice=5\n")
		}, "a b"},
		"edited, and what was left is all that is known": {func(m *machine) {
			m.write(ours+dropInName, "[Service]\n")
			m.write(ours+prevName, m.dropIn("b", nil))
		}, "b"},
		"ours over a link": {func(m *machine) {
			m.write("elsewhere/x", m.dropIn("a", nil))
			m.link(m.path("elsewhere/x"), ours+dropInName)
		}, "a"},
		"a variable of ours that was moved by hand": {func(m *machine) {
			m.write(ours+dropInName, m.dropIn("a", func(d *DropIn) { d.Environment[0].Value = m.ref("b").Path + "/llama-server" }))
		}, "a b"},
		"a linked unit file": {func(m *machine) {
			m.write("dotfiles/llm.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-a/1bit serve\n")
			m.link(m.path("dotfiles/llm.service"), unitFolder+"/llm.service")
		}, "a"},
		"a linked drop-in folder": {func(m *machine) {
			m.write("dotfiles/d/hrx.conf", "[Service]\nEnvironment=X=HOME/.local/share/1bit-hrx-a/x\n")
			m.write("dotfiles/d/"+dropInName, m.dropIn("b", nil))
			m.link(m.path("dotfiles/d"), unitFolder+"/llm.service.d")
		}, "a b"},
		"a linked unit folder": {func(m *machine) {
			m.write("dotfiles/llm.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-a/1bit serve\n")
			m.link(m.path("dotfiles"), unitFolder)
		}, "a"},
		"links that lead nowhere or round in circles": {func(m *machine) {
			m.link(m.path("nowhere"), ours+dropInName)
			m.link("round.service", unitFolder+"/round.service")
			m.link("/dev/null", unitFolder+"/masked.service")
		}, ""},
		"with the configuration moved": {func(m *machine) {
			m.host.UnitDir = m.path("etc-of-ai/systemd/user")
			m.write("home/ai/.config/systemd/user/x.service", "[Service]\nExecStart=%h/.local/share/1bit-hrx-a/x\n")
			m.write("etc-of-ai/systemd/user/x.service", "[Service]\nExecStart=%h/.local/share/1bit-hrx-b/x\n")
		}, "a b"},
		"the data home": {func(m *machine) {
			m.write("home/ai/.local/share/systemd/user/llm.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-a/x\n")
		}, "a"},
		"the other scope": {func(m *machine) {
			m.write("etc/systemd/system/llm.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-a/x\n")
			m.write("etc/systemd/system/inst@x.service.d/"+dropInName, m.dropIn("b", nil))
			m.write("usr/lib/systemd/user/llm.service", "[Service]\nExecStart=%h/.local/share/1bit-hrx-c/x\n")
		}, "a b c"},
		"folders that the host is told of": {func(m *machine) {
			m.write("more/llm.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-a/x\n")
			m.host.UnitDirs = []string{m.path("more")}
		}, "a"},
		"an environment file": {func(m *machine) {
			m.write("home/ai/llm.env", "X=HOME/.local/share/1bit-hrx-a/x\n")
			m.write("home/ai/two.env", "X=HOME/.local/share/1bit-hrx-b/x\n")
			m.write(unitFolder+"/llm.service", "[Service]\nEnvironmentFile=-%h/llm.env\n")
			m.write(unitFolder+"/inst@.service.d/x.conf", "[Service]\nEnvironmentFile=HOME/%i.env\n")
		}, "a b"},
		"a link to the package": {func(m *machine) {
			m.link("1bit-hrx-a", "home/ai/.local/share/current")
			m.link("current", "home/ai/.local/share/newest")
			m.write(unitFolder+"/llm.service", "[Service]\nExecStart=-%h/.local/share/newest/hrx/bin/llama-server\n")
		}, "a"},
		"an instance that names the package": {func(m *machine) {
			m.write(unitFolder+"/llm@.service", "[Service]\nExecStart=%h/.local/share/1bit-hrx-%i/x\n")
			m.link(m.path(unitFolder+"/llm@.service"), unitFolder+"/default.target.wants/llm@a.service")
			m.mkdir(unitFolder + "/llm@b.service.d")
		}, "a b"},
		"a unit that names the package": {func(m *machine) {
			m.write(unitFolder+"/x-a.service", "[Service]\nExecStart=%h/.local/share/1bit-hrx-%j/x\n")
		}, "a"},
		"any package may be meant": {func(m *machine) {
			m.write(unitFolder+"/llm.service", "[Service]\nExecStart=%h/.local/share/1bit-hrx-${ID}/x\n")
		}, "a b c ab"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.tree(m)
			if got := m.used(); got != c.want {
				t.Errorf("%q in use, want %q", got, c.want)
			}
		})
	}
}

func TestUsageOfEverybody(t *testing.T) {
	m := newMachine(t)
	m.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nbob:x:1001:1001::/srv/bob:/bin/sh\nbin:x:2:2::/:/bin/false\n")
	m.write("root/.config/systemd/user/x.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-a/x\n")
	m.write("srv/bob/.config/systemd/user/x.service.d/"+dropInName, m.dropIn("b", nil))
	m.write("home/eve/.local/share/systemd/user/x.service", "[Service]\nExecStart=HOME/.local/share/1bit-hrx-c/x\n")
	if got := m.used(); got != "" {
		t.Errorf("for a user: %q in use", got)
	}
	m.host.Scope, m.host.UnitDir = systemd.ScopeSystem, m.path("etc/systemd/system")
	if got := m.used(); got != "a b c" {
		t.Errorf("for the system: %q in use", got)
	}
}

// What cannot be read may need anything: a removal is refused, and a list says so.
func TestUsageThatCannotBeTold(t *testing.T) {
	m := newMachine(t)
	m.write(unitFolder, "a file where the folder should be")
	pkg := &store.Package{Name: "hrx-a", Path: m.ref("a").Path}
	if used, err := m.host.UsedBy(t.Context(), pkg); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), m.path(unitFolder)) {
		t.Errorf("used by %q, %v", used, err)
	}
	u, err := m.host.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if of := u.Of(pkg); len(of) != 1 || !strings.Contains(of[0], m.path(unitFolder)) {
		t.Errorf("listed as used by %q", of)
	}
}

// A package of the same name in another store is another one.
func TestUsageOfTwoStores(t *testing.T) {
	m := newMachine(t)
	m.mkdir("opt/1bit/1bit-hrx-a")
	m.write("etc/systemd/system/llm.service", "[Service]\nExecStart="+m.path("opt/1bit/1bit-hrx-a/x")+"\n")
	m.write("etc/systemd/system/llm.service.d/"+dropInName, m.dropIn("a", func(d *DropIn) {
		d.Package.Path = m.path("opt/1bit/1bit-hrx-a")
		d.Environment[0].Value = m.path("opt/1bit/1bit-hrx-a/x")
	}))
	if got := m.used(); got != "" {
		t.Errorf("%q in use", got)
	}
	used, err := m.host.UsedBy(t.Context(), &store.Package{Name: "hrx-a", Path: m.path("opt/1bit/1bit-hrx-a")})
	if want := []string{"on disk for llm.service", "named in " + m.path("etc/systemd/system/llm.service")}; err != nil || !slices.Equal(used, want) {
		t.Errorf("used by %q, %v; want %q", used, err, want)
	}
}

func TestMentions(t *testing.T) {
	const folder = "/home/ai/.local/share/1bit-hrx-a1"
	for text, want := range map[string]bool{
		"":                                     false,
		"1bit-":                                false,
		"X=%h/.local/share/1bit-hrx-a1/bin":    true,
		"sh -c '(exec …/1bit-hrx-a1)'":         true,
		"{a/1bit-hrx-a1,b}":                    true,
		"a/1bit-hrx-a1|b":                      true,
		"a/1bit-hrx-a1}":                       true,
		"the one in 1bit-hrx-a1.":              true,
		"1bit-hrx-a1":                          true,
		"[1bit-hrx-a1]":                        true,
		"`1bit-hrx-a1`":                        true,
		"1bit-hrx-a1\\":                        true,
		"1bit-hrx-a1é":                         true,
		"/x/1bit-hrx-a12/bin":                  false,
		"/x/1bit-hrx-a1-b/bin":                 false,
		"/x/1bit-hrx-a/bin /x/1bit-hrx-b/bin":  false,
		"/x/1bit-hrx-a12/ and /x/1bit-hrx-a1/": true,
		"/x/1bit-hrx-%i/bin":                   true,
		"/x/1bit-$P/bin":                       true,
		"/x/1bit-${P}/bin":                     true,
		"/x/1bit-hrx-a?/bin":                   true,
		"/x/1bit-vk-%i/bin":                    false,
		"/x/1bit-/1bit-hrx-a1":                 true,
	} {
		if got := mentions([]byte(text), folder); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                    "",
		`1bit\x2dhrx\x2da`:         "1bit-hrx-a",
		`\x`:                       `\x`,
		`\xzz\x2`:                  `\xzz\x2`,
		`\\x2d is not one, and \x`: `\- is not one, and \x`,
	} {
		in := []byte(text)
		if got := string(unescaped(in)); got != want || string(in) != text {
			t.Errorf("%q: %q, want %q (now %q)", text, got, want, in)
		}
	}
}

func TestSpecified(t *testing.T) {
	for unit, want := range map[string]string{
		"a.service":       " a a a.service a  %% %h",
		"a-b@i.service":   "i a-b b a-b@i.service a-b@i %I %% %h",
		"a@i.service":     "i a a a@i.service a@i i %% %h",
		`a@i\x2d.service`: `i\x2d a a a@i\x2d.service a@i\x2d %I %% %h`,
	} {
		if got := string(specified([]byte("%i %p %j %n %N %I %% %h"), unit)); got != want {
			t.Errorf("%s: %q, want %q", unit, got, want)
		}
	}
}

func TestNamedUnits(t *testing.T) {
	m := newMachine(t)
	for _, dir := range []string{"i@one.service.d", "i@.service.d", "p-.service.d", "service.d", "x.timer.d", "bad name.service.d"} {
		m.mkdir(unitFolder + "/" + dir)
	}
	m.link("../i@.service", unitFolder+"/default.target.wants/i@two.service")
	m.link("../x.socket", unitFolder+"/default.target.requires/x.socket")
	m.write(unitFolder+"/plain.service", "")
	got := namedUnits([]string{m.path(unitFolder), m.path("nowhere")})
	if diff := cmp.Diff([]string{"i@one.service", "i@two.service", "p-.service", "plain.service"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzMentions(f *testing.F) {
	for _, text := range []string{"/x/1bit-hrx-a1/y", "1bit-hrx-%i", "1bit-hrx-a1-", `1bit\x2dhrx`, "1bit-1bit-hrx-a1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = unescaped(text)
		mentions(text, "/x/1bit-hrx-a1")
		// Written out as a path, a package is never overlooked.
		if !mentions(slices.Concat(text, []byte("/1bit-hrx-a1/")), "/x/1bit-hrx-a1") {
			t.Errorf("overlooked behind %q", text)
		}
	})
}
