package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// nativeManager is a package manager of the machine, as a test inside the host calls it.
type nativeManager struct {
	format, program string
	prepare         string // a script
	install, remove string // commands to be followed by files and by names
	again           string // command to install the same file once more; "" where that is refused while it is used
	clean           string // a script with $name that fails, or prints, unless the package is as it was installed
	leftovers       string // a script that prints what is left of all packages outside of /opt/1bit
}

// On Debian, rpm refuses to work without --force-debian, and its database knows nothing of what the packages depend
// on; so with pacman.
var nativeManagers = []nativeManager{
	{
		format: "deb", program: "dpkg",
		prepare: "echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/tests", // else it waits for the disk with every file
		install: "dpkg -i", remove: "dpkg -r", again: "dpkg -i",
		clean:     `dpkg --audit; dpkg -V "$name"; dpkg -L "$name" | grep -qx "/opt/1bit/$name/1bit-package.json"`,
		leftovers: `dpkg-query -W -f '${Package} ${Status}\n' '1bit-*' 2>/dev/null; ls /etc/apt/apt.conf.d | grep ^1bit; ls /var/lib/dpkg/info | grep ^1bit`,
	},
	{
		format: "rpm", program: "rpm",
		prepare: "rpm --initdb",
		install: "rpm --force-debian --nodeps -i", remove: "rpm --force-debian -e", again: "rpm --force-debian --nodeps -U --force",
		clean:     `rpm -V --nodeps "$name"; rpm -ql "$name" | grep -qx "/opt/1bit/$name/1bit-package.json"`,
		leftovers: `rpm -qa`,
	},
	{
		format: "archlinux", program: "pacman",
		prepare: "mkdir -p /var/lib/pacman /var/cache/pacman/pkg",
		install: "pacman --config /dev/null --noconfirm -Udd", remove: "pacman --config /dev/null --noconfirm -Rdd",
		clean:     `pacman --config /dev/null -Qkk "$name" | grep -v ', 0 altered files$'; pacman --config /dev/null -Qql "$name" | grep -qx "/opt/1bit/$name/1bit-package.json"`,
		leftovers: `pacman --config /dev/null -Q; ls /usr/share/libalpm/hooks /usr/share/libalpm/scripts | grep ^1bit`,
	},
}

// nativeSite is a host with packages of one format to install.
type nativeSite struct {
	*testing.T
	nativeManager
	host    *testhost.Host
	dir     string // inside
	program string // inside
	port    int
}

const (
	nativeUnit = "1bit-native.service"
	nativePort = 18097
)

// sh runs a script as root, ai runs one as the user; both know our program as onebit.
func (s *nativeSite) sh(script string) string { return s.run("root", script) }
func (s *nativeSite) ai(script string) string { return s.run(s.host.User, script) }

func (s *nativeSite) run(user, script string) string {
	s.Helper()
	out, text, err := s.try(user, script)
	if err != nil {
		s.Fatalf("as %s: %s\n%v\n%s%s", user, script, err, out, text)
	}
	return out
}

func (s *nativeSite) try(user, script string) (stdout, stderr string, err error) {
	scope := "system"
	if user != "root" {
		scope = "user"
	}
	cmd := s.host.Command(s.Context(), user, "timeout", "600", "sh", "-euc", fmt.Sprintf(
		"onebit() { %s --scope %s --config %s/config.yaml \"$@\"; }\nunit=%s\n%s", s.program, scope, s.dir, nativeUnit, script))
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	err = cmd.Run()
	return out.String(), text.String(), err
}

// fails runs a script as root that must fail and say why.
func (s *nativeSite) fails(script string, want ...string) {
	s.Helper()
	out, text, err := s.try("root", script)
	if err == nil {
		s.Errorf("%s: worked: %s%s", script, out, text)
		return
	}
	for _, w := range want {
		if !strings.Contains(out+text, w) {
			s.Errorf("%s: does not say %q: %s%s", script, w, out, text)
		}
	}
}

type nativeListed struct {
	Name, Digest, Path, State string
	InstalledBy               string `json:"installed_by"`
}

// listed are the packages that root, or the user, sees, by id.
func (s *nativeSite) listed(user string) map[string]nativeListed {
	s.Helper()
	var doc struct{ Packages []nativeListed }
	if err := json.Unmarshal([]byte(s.run(user, "onebit -o json pkg list")), &doc); err != nil {
		s.Fatal(err)
	}
	out := map[string]nativeListed{}
	for _, p := range doc.Packages {
		if strings.HasPrefix(p.Path, "/opt/1bit/") {
			out[strings.TrimPrefix(p.Name, "hrx-")] = p
		}
	}
	return out
}

// wantIntact checks that packages are listed as ours would be, verified by us and by the package manager.
func (s *nativeSite) wantIntact(ids ...string) {
	s.Helper()
	for _, user := range []string{"root", s.host.User} {
		list := s.listed(user)
		if len(list) != len(ids) {
			s.Errorf("%s sees %v, want %v", user, list, ids)
		}
		for _, id := range ids {
			if p := list[id]; p.State != "ok" || p.InstalledBy != s.format {
				s.Errorf("%s sees %s as %+v", user, id, p)
			}
		}
	}
	out := s.sh("for id in " + strings.Join(ids, " ") + "; do\nonebit pkg verify hrx-$id >/dev/null\nname=1bit-hrx-$id\n" +
		"{ " + s.clean + "; } || true\n" + s.clean[strings.LastIndex(s.clean, ";")+1:] + "\ndone")
	if strings.TrimSpace(out) != "" {
		s.Errorf("%s finds one of %v changed: %s", s.nativeManager.program, ids, out)
	}
}

// live is the package that the unit's process runs from.
func (s *nativeSite) live() string {
	s.Helper()
	var doc struct {
		Services []struct {
			Live *struct {
				Main *struct{ Package, Path string }
			}
		}
	}
	out := s.ai("onebit -o json pkg status $unit")
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Services) != 1 {
		s.Fatalf("%v: %s", err, out)
	}
	live := doc.Services[0].Live
	if live == nil || live.Main == nil || live.Main.Path != "/opt/1bit/1bit-"+live.Main.Package {
		s.Fatalf("not live from /opt/1bit: %s", out)
	}
	return strings.TrimPrefix(live.Main.Package, "hrx-")
}

func newNativeSite(t *testing.T, m nativeManager, tools tools) *nativeSite {
	if _, err := exec.LookPath(m.program); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no %s: run internal/demo/setup.sh", m.program)
	}
	host := testhost.Require(t)
	s := &nativeSite{T: t, nativeManager: m, host: host, dir: "/opt/onebit/native-" + m.format}
	dir := t.TempDir()
	writeTree(t, map[string]string{
		filepath.Join(dir, "config.yaml"):                                  "restart: free\n",
		host.Outside("/etc/1bit/config.yaml"):                              "restart: free\n",
		host.Outside(filepath.Join(host.Home, ".config/1bit/config.yaml")): "restart: free\n",
		host.Outside(filepath.Join(host.Home, ".config/systemd/user", nativeUnit)): fmt.Sprintf(
			"[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port %d\nRestart=always\n", nativePort),
		host.Outside(filepath.Join(host.Home, ".config/systemd/user", nativeUnit+".d/hrx.conf")): "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=/opt/1bit/1bit-hrx-e1e1e1e/hrx/llama/bin/llama-server\n",
	})
	mustRun(t, "chown", "-R", strconv.Itoa(host.UID), host.Outside(filepath.Join(host.Home, ".config")))
	buildNative(t, tools, tools.fakeengine, dir, m.format, "e1e1e1e", "e2e2e2e", "e3e3e3e")
	mustRun(t, "cp", tools.program, filepath.Join(dir, "1bit"))
	mustRun(t, "mv", filepath.Join(dir, "dist"), filepath.Join(dir, "same"))
	mustRun(t, "mv", filepath.Join(dir, "tree"), filepath.Join(dir, "same-tree"))
	buildNative(t, tools, "", dir, m.format, "e1e1e1e")
	if err := os.Rename(dir, filepath.Join(filepath.Dir(dir), filepath.Base(s.dir))); err != nil {
		t.Fatal(err)
	}
	inside, err := host.Bring(filepath.Join(filepath.Dir(dir), filepath.Base(s.dir)))
	if err != nil || inside != s.dir {
		t.Fatal(inside, err)
	}
	s.program = s.dir + "/1bit"
	t.Cleanup(func() {
		// After a failure, so that it does not become the next format's.
		_, _ = host.Run(context.Background(), host.User, "sh", "-c", "systemctl --user stop "+nativeUnit+"; rm -rf ~/.config/systemd/user/"+nativeUnit+"*")
		_, _ = host.Run(context.Background(), "root", "rm", "-rf", "/opt/1bit")
	})
	if m.prepare != "" {
		s.sh(m.prepare)
	}
	return s
}

// buildNative makes packages of one format in dir/dist, as buildPackages makes archives.
func buildNative(t *testing.T, tools tools, server, dir, format string, ids ...string) {
	t.Helper()
	buildPackages(t, tools.program, server, dir) // the tree
	for _, id := range ids {
		mustRun(t, tools.program, "--scope", "user", "pkg", "build", "--recipe", filepath.Join(dir, "recipe.yaml"), "--tree", filepath.Join(dir, "tree"),
			"--out", filepath.Join(dir, "dist"), "--id", id, "--version", "v2026.44", "--format", format)
	}
}

// Packages of every format are installed side by side, seen by us, switched to, run from, guarded while something
// needs them, and removed without a trace.
func TestNativePackagesInHost(t *testing.T) {
	tools := requireTools(t)
	for _, m := range nativeManagers {
		t.Run(m.format, func(t *testing.T) {
			s := newNativeSite(t, m, tools)
			remove := func(id string) string { return s.remove + " 1bit-hrx-" + id }
			same, other := s.dir+"/same/*", s.dir+"/dist/*"
			s.ai(fmt.Sprintf(`umask 077; cd "$(mktemp -d)"; export LANG=de_DE.UTF-8 TZ=Asia/Tokyo TMPDIR=$PWD
onebit pkg build --recipe %[1]s/recipe.yaml --tree %[1]s/same-tree --out dist --id e1e1e1e --version v2026.44 --format %[2]s --no-run >/dev/null
cmp dist/* %[1]s/same/*e1e1e1e*`, s.dir, s.format)) // of another account it is the same to the byte
			s.sh(s.install + " " + same)
			s.wantIntact("e1e1e1e", "e2e2e2e", "e3e3e3e")
			s.fails("onebit --yes pkg remove hrx-e3e3e3e", s.nativeManager.program)

			// Another package of the same name never takes its place.
			if s.again != "" {
				s.fails(s.again+" "+other, "holds another package of that name")
				s.wantIntact("e1e1e1e", "e2e2e2e", "e3e3e3e")
			}

			// A user's unit runs it: whatever it is taken away by refuses.
			s.ai("systemctl --user daemon-reload; systemctl --user start $unit")
			if got := s.live(); got != "e1e1e1e" {
				t.Errorf("runs %s", got)
			}
			if s.again != "" { // with its own files it may be
				s.sh(s.again + " " + s.dir + "/same/*e1e1e1e*")
				s.wantIntact("e1e1e1e", "e2e2e2e", "e3e3e3e")
			}
			s.fails(remove("e1e1e1e"), "1bit-hrx-e1e1e1e is in use: process", "(llama-server) runs from /opt/1bit/1bit-hrx-e1e1e1e")
			s.ai("systemctl --user stop $unit")
			s.fails(remove("e1e1e1e"), "is in use: "+s.host.Home+"/.config/systemd/user/"+nativeUnit+".d/hrx.conf names it")
			s.wantIntact("e1e1e1e", "e2e2e2e", "e3e3e3e")
			if s.format == "deb" {
				s.aptKeeps("1bit-hrx-e1e1e1e")
			}

			// Switched away, and then let go of: until then rollback --again would need it.
			s.ai("systemctl --user start $unit")
			for _, id := range []string{"e2e2e2e", "e3e3e3e", "e2e2e2e"} {
				s.ai("onebit pkg switch $unit hrx-" + id + " --restart --watch 300ms")
				if got := s.live(); got != id {
					t.Errorf("after the switch to %s it runs %s", id, got)
				}
				if id == "e2e2e2e" {
					s.fails(remove("e1e1e1e"), "is in use")
				}
			}
			s.fails(remove("e3e3e3e"), "is in use", "names it") // what a rollback would go to
			s.ai("onebit pkg unswitch $unit; rm ~/.config/systemd/user/$unit.d/hrx.conf; systemctl --user daemon-reload")
			s.sh(remove("e1e1e1e"))
			s.wantIntact("e2e2e2e", "e3e3e3e")
			if left := s.sh("find /etc /opt/1bit /usr /var/lib /run -xdev -name '*e1e1e1e*'"); left != "" {
				t.Errorf("left behind: %s", left)
			}
			s.sh(s.install + " " + s.dir + "/same/*e1e1e1e*")
			s.wantIntact("e1e1e1e", "e2e2e2e", "e3e3e3e")

			s.ai("systemctl --user stop $unit; rm -rf ~/.config/systemd/user/$unit ~/.config/systemd/user/$unit.d; systemctl --user daemon-reload")
			s.sh(remove("e1e1e1e") + " 1bit-hrx-e2e2e2e 1bit-hrx-e3e3e3e")
			if left := s.sh("ls -A /opt/1bit 2>/dev/null | grep -v '^[.]1bit-staging$' || true\n{ " + s.leftovers + "; } || true"); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// aptKeeps checks that autoremove leaves a package alone because of what it brings, even if nobody asked for it.
func (s *nativeSite) aptKeeps(name string) {
	s.Helper()
	takes := "apt-mark auto " + name + " >/dev/null; apt-get -s autoremove | grep '^Remv " + name + " ' || true"
	if out := s.sh(takes); out != "" {
		s.Errorf("autoremove would take it: %s", out)
	}
	conf := "/etc/apt/apt.conf.d/" + name + ".conf"
	if out := s.sh("mv " + conf + " /tmp/; " + takes + "; mv /tmp/" + name + ".conf " + conf); out == "" {
		s.Errorf("autoremove does not take %s without that file either: the test shows nothing", name)
	}
}
