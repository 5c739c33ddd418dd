package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

func TestSurprises(t *testing.T) {
	root := t.TempDir()
	etc, usr := filepath.Join(root, "etc"), filepath.Join(root, "usr")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/quiet.service", "[Unit]\nStartLimitIntervalSec=1\n[Service]\nType=exec\nExecStart=/bin/true\nStartLimitInterval=2\n[Install]\nWantedBy=default.target\n")
	write("etc/loud.service", "[Unit]\nRestart=always\n[Service]\nType=notify\nExecStart=/opt/x (deleted) --port 1\nStartLimitIntervalSec=1\nWantedBy=x\n[Install]\nWantedBy=multi-user.target\n")
	write("usr/loud.service.d/50-vendor.conf", "[Service]\nEnvironment=VENDOR=1\n")
	write("etc/loud.service.d/50-vendor.conf", "")
	write("var/lib/systemd/linger/ai", "")
	write("dotfiles/eng.d/50-eng.conf", "[Service]\nEnvironment=WHO=dotfiles\n")
	write("etc/dead.service", "[Service]\nExecStart=/bin/true\nExecStart=/bin/false\n")
	write("etc/halved.service", "[Service]\nExecStart=/bin/true\n")
	write("etc/halved.service.d/a.conf", "[Service]\nExecStart=bin/x\nEnvironment=LOST=1\n")
	write("etc/linked.service", "[Service]\nExecStart=/bin/true\n")
	link("../dotfiles/eng.d", "etc/linked.service.d")

	write("etc/secret.service", "[Service]\nExecStart=/bin/true --api-key plaice\nEnvironment=\"API_KEY=sword\" fish\nEnvironment=HF_TOKEN=p%40ss\n"+
		"Environment=\"DB_PASSWORD=herring\nEnvironment=SPEED=fast lane\n")

	h := &Host{Scope: systemd.ScopeUser, UnitDir: etc, Root: root, User: "ai"}
	look := func(h *Host, unit string) string {
		t.Helper()
		u := &systemd.Unit{
			ID: unit, FragmentPath: filepath.Join(etc, unit), SearchPath: []string{etc, usr}, Type: "exec",
		}
		disk, err := u.Rescan()
		if err != nil {
			t.Fatal(err)
		}
		settings, err := systemd.ReadSettings(disk, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		s := &Service{Unit: unit}
		h.surprises(&view{loaded: u, disk: disk, settings: settings}, s)
		for _, f := range s.findings {
			if f.Unit != unit || f.Remedy == "" || f.Check == "" {
				t.Errorf("finding %+v", f)
			}
			out = append(out, f.What+": "+f.Remedy)
		}
		return strings.Join(out, "\n")
	}
	if got := look(h, "quiet.service"); got != "" {
		t.Errorf("findings about a good unit: %s", got)
	}
	loud := look(h, "loud.service")
	for _, want := range []string{
		"WantedBy=multi-user.target", "reenable loud.service", "loud.service:7 sets WantedBy= in [Service]", "Restart= ignored, it belongs into [Service]",
		"loud.service:6: StartLimitIntervalSec= ignored, it belongs into [Unit]", "move the line into [Install]", "Type=notify and loaded is Type=exec",
		"50-vendor.conf: hidden by", `"(deleted)" is a word of the command`,
	} {
		if !strings.Contains(loud, want) {
			t.Errorf("no %q in:\n%s", want, loud)
		}
	}
	if n := strings.Count(loud, "StartLimitIntervalSec"); n != 1 {
		t.Errorf("%d findings about one line:\n%s", n, loud)
	}
	for unit, want := range map[string]string{
		"dead.service":   "dead.service:3: the unit does not start, there is more than one ExecStart=, which only a Type=oneshot unit may have: /bin/false: correct it: nothing can start the unit before that",
		"halved.service": "halved.service.d/a.conf:2: ignored with the rest of the file: ExecStart=, the program \"bin/x\" is neither a name nor an absolute path: bin/x: correct it: what the file says behind it is lost",
	} {
		if got := look(h, unit); !strings.HasSuffix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %s, want %s", unit, got, want)
		}
	}
	for _, line := range strings.Split(look(h, "secret.service"), "\n") {
		if open := strings.Contains(line, "secret.service:6:"); open != strings.Contains(line, "lane") ||
			!open && !strings.Contains(line, "(masked): write") || strings.Contains(line, "sword") || strings.Contains(line, "fish") || strings.Contains(line, "herring") || strings.Contains(line, "p%40ss") {
			t.Errorf("of a secret: %s", line)
		}
	}
	if got := look(h, "linked.service"); !strings.Contains(got, "the folder is a symbolic link") {
		t.Errorf("a linked folder: %s", got)
	}
	h.User = "bob"
	if got := look(h, "quiet.service"); !strings.Contains(got, "loginctl enable-linger bob") {
		t.Errorf("without linger: %s", got)
	}
	h.Scope = systemd.ScopeSystem
	if got := look(h, "loud.service"); strings.Contains(got, "linger") || strings.Contains(got, "multi-user") {
		t.Errorf("a unit of the system's: %s", got)
	}
}
