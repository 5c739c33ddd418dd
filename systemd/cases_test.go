package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unitCase is a set of files after a public bug report, and what systemd makes of it. The first
// part of a path says where it goes: etc, run and usr are the search path from its strong end,
// files is anywhere else. Text that begins with "-> " is a symbolic link.
type unitCase struct {
	name   string
	unit   string // engine.service when empty
	files  map[string]string
	want   map[string]string // the environment, as far as the files make it
	start  []string          // ExecStart= as written
	loaded []string          // argv of ExecStart as systemd has it, when that says more
	v252   bool              // known of this version only
}

const plainUnit = "[Service]\nExecStart=/bin/true\nEnvironment=WHO=unit\n"

var unitCases = []unitCase{{
	name: "comments inside continuations",
	files: map[string]string{
		"usr/engine.service": "[Unit]\nDescription=engine\n[Service]\nType=exec\n" +
			"# old line kept for rollback: /opt/eng/a/bin/llama-server \\\n" +
			"ExecStart=/opt/eng/b/bin/llama-server \\\n    --port 9001 \\\n# --ctx-size 4096 \\\n    ; --threads 4 \\\n" +
			"    --alias small-model \\\n\nEnvironment=A=1 \\\n; B=2 \\\n  C=3\n",
		"etc/engine.service.d/20-sh.conf": "[Service]\n; reviewed \\\nExecStop=/bin/sh -c 'case x in \\\n    y) echo no \\\n    ;; \\\n    *) echo yes ;; esac'\n",
	},
	want:   map[string]string{"A": "1", "C": "3"},
	start:  []string{"/opt/eng/b/bin/llama-server      --port 9001      --alias small-model"},
	loaded: []string{"/opt/eng/b/bin/llama-server", "--port", "9001", "--alias", "small-model"},
}, {
	name: "quoting",
	files: map[string]string{
		"usr/engine.service": "[Service]\nExecStart=/bin/true\nEnvironment=KEEP=old\n",
		"etc/engine.service.d/10-env.conf": `[Service]
Environment= A='one' "B=two words" 'C=has"dq' D=x\x41y E=
Environment = F=1,G=2
Environment=H="p q" I=$HOME J=a;b
Environment=my.key=1 OK1=1
Environment=export K=2
Environment="L=trailing quote" M=3"
Environment="N=ab"cd O='x'y'z'
`,
	},
	want: map[string]string{"KEEP": "old", "A": "one", "B": "two words", "C": `has"dq`, "D": "xAy", "E": "",
		"F": "1,G=2", "H": "p q", "I": "$HOME", "J": "a;b", "OK1": "1", "K": "2", "L": "trailing quote", "N": "abcd", "O": "xyz"},
}, {
	name: "percent signs",
	files: map[string]string{
		"usr/engine.service": "[Service]\nExecStart=/bin/true\n",
		"etc/engine.service.d/10-proxy.conf": `[Service]
Environment=BEFORE=1 "HTTPS_PROXY=http://ops:p%40ss@proxy.test:3128" AFTER=1
Environment=NAME=%n LIT=100%% TAIL=50%
Environment=LATER=1
`,
	},
	want: map[string]string{"BEFORE": "1", "AFTER": "1", "NAME": "engine.service", "LIT": "100%", "TAIL": "50%", "LATER": "1"},
}, {
	name: "order over folders",
	files: map[string]string{
		"etc/service.d/10-admin.conf":          "[Service]\nEnvironment=SAME=service-d\n",
		"etc/service.d/99-all.conf":            "[Service]\nEnvironment=WHO=type-99 TYPE=etc99\n",
		"etc/engine.service.d/Z-upper.conf":    "[Service]\nEnvironment=CASE=upper\n",
		"etc/engine.service.d/a-lower.conf":    "[Service]\nEnvironment=CASE=lower\n",
		"etc/engine.service.d/10-admin.conf":   "[Service]\nEnvironment=WHO=etc-10\n",
		"etc/engine.service.d/10-n.conf":       "[Service]\nEnvironment=NUM=10\n",
		"etc/engine.service.d/9-n.conf":        "[Service]\nEnvironment=NUM=9\n",
		"etc/engine.service.d/98-x.conf.bak":   "[Service]\nEnvironment=WHO=bak\n",
		"etc/engine.service.d/.95-hidden.conf": "[Service]\nEnvironment=WHO=hidden\n",
		"etc/engine.service.d/97-x.conf~":      "[Service]\nEnvironment=WHO=tilde\n",
		"usr/engine.service":                   plainUnit,
		"usr/engine.service.d/60-pkg.conf":     "[Service]\nEnvironment=WHO=usr-60\n",
		"run/engine.service.d/60-pkg.conf":     "[Service]\nEnvironment=WHO=run-60 SAMENAME=run\n",
	},
	want: map[string]string{"WHO": "type-99", "TYPE": "etc99", "CASE": "lower", "NUM": "9", "SAMENAME": "run"},
}, {
	name: "a link that leads nowhere and a folder hide",
	v252: true,
	files: map[string]string{
		"usr/engine.service":                    plainUnit,
		"etc/engine.service.d/61-dangling.conf": "-> /nowhere/at.conf",
		"usr/engine.service.d/61-dangling.conf": "[Service]\nEnvironment=HIDDEN=1\n",
		"run/engine.service.d/62-dir.conf/file": "",
		"usr/engine.service.d/62-dir.conf":      "[Service]\nEnvironment=HIDDEN=2\n",
	},
	want: map[string]string{"WHO": "unit"},
}, {
	name: "dash prefixes",
	unit: "one-two-three.service",
	files: map[string]string{
		"usr/one-two-three.service":             "[Service]\nExecStart=/bin/true\n",
		"usr/one-two-three.service.d/50-a.conf": "[Service]\nEnvironment=A=own\n",
		"etc/one-two-.service.d/60-b.conf":      "[Service]\nEnvironment=A=two B=two\n",
		"run/one-.service.d/60-b.conf":          "[Service]\nEnvironment=B=hidden\n",
		"usr/one-.service.d/70-c.conf":          "[Service]\nEnvironment=C=one\n",
		"etc/one-two.service.d/99-not.conf":     "[Service]\nEnvironment=C=not-a-prefix\n",
	},
	want: map[string]string{"A": "two", "B": "two", "C": "one"},
}, {
	name: "empty file and link to null hide",
	files: map[string]string{
		"usr/engine.service":                  plainUnit,
		"usr/engine.service.d/50-vendor.conf": "[Service]\nEnvironment=VENDOR=1 LD_LIBRARY_PATH=/opt/eng/v/lib\n",
		"usr/engine.service.d/60-two.conf":    "[Service]\nEnvironment=TWO=1\n",
		"etc/engine.service.d/50-vendor.conf": "",
		"etc/engine.service.d/60-two.conf":    "-> /dev/null",
	},
	want: map[string]string{"WHO": "unit"},
}, {
	name: "linked folder and linked file",
	v252: true,
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"files/eng.d/50-eng.conf":          "[Service]\nEnvironment=WHO=dotfiles\n",
		"files/one.conf":                   "[Service]\nEnvironment=ONE=1\n",
		"etc/engine.service.d":             "-> ../files/eng.d",
		"run/engine.service.d/60-one.conf": "-> FILES/one.conf",
	},
	want: map[string]string{"WHO": "unit", "ONE": "1"},
}, {
	name: "byte order mark and line ends",
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"etc/engine.service.d/10-bom.conf": "\ufeff[Service]\nEnvironment=BOM=1\n",
		"etc/engine.service.d/20-crlf.conf": "[Service]\r\nEnvironment=CRLF=1\r\nExecStart=\r\nExecStart=/bin/echo a \\\r\n" +
			"  b\r\n",
		"etc/engine.service.d/30-cr.conf":  "[Service]\rEnvironment=LONECR=1\rEnvironment=LONECR2=2",
		"etc/engine.service.d/40-nul.conf": "[Service]\nEnvironment=NUL1=1\x00Environment=NUL2=2\n",
		"etc/engine.service.d/50-tab.conf": "  [Service]  \n\tEnvironment =\tTAB=1  \nEnvironment=NOEOL=1",
	},
	want: map[string]string{"WHO": "unit", "BOM": "1", "CRLF": "1", "LONECR": "1", "LONECR2": "2", "NUL1": "1",
		"NUL2": "2", "TAB": "1", "NOEOL": "1"},
	start:  []string{"/bin/echo a    b"},
	loaded: []string{"/bin/echo", "a", "b"},
}, {
	name: "a line of 70 KiB",
	files: map[string]string{
		"usr/engine.service": plainUnit,
		"etc/engine.service.d/10-long.conf": "[Service]\nEnvironment=BEFORE=1\nEnvironment=BIG=" +
			strings.Repeat("x", 70_000) + "\nEnvironment=AFTER=1\n",
	},
	want: map[string]string{"WHO": "unit", "BEFORE": "1", "BIG": strings.Repeat("x", 70_000), "AFTER": "1"},
}, {
	name: "a line over a MiB",
	files: map[string]string{
		"usr/engine.service": plainUnit,
		"etc/engine.service.d/10-long.conf": "[Service]\nEnvironment=BEFORE=1\nEnvironment=BIG=" +
			strings.Repeat("x", 1<<20+10) + "\nEnvironment=AFTER=1\n",
		"etc/engine.service.d/20-next.conf": "[Service]\nEnvironment=NEXT=1\n",
	},
	want: map[string]string{"WHO": "unit", "BEFORE": "1", "NEXT": "1"},
}, {
	name: "not UTF-8",
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"etc/engine.service.d/10-bin.conf": "[Service]\nEnvironment=BEFORE=1\nEnvironment=BIN=\xff\nEnvironment=AFTER=1\n",
	},
	want: map[string]string{"WHO": "unit", "BEFORE": "1"},
}, {
	name: "torn write",
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"etc/engine.service.d/10-nul.conf": strings.Repeat("\x00", 4096),
		"etc/engine.service.d/20-cut.conf": "Environment=NO_SECTION=1\n[Service]\nEnvironment=A=1\nEnvironment=\"B=",
	},
	want: map[string]string{"WHO": "unit", "A": "1"},
}, {
	name: "reset of a command",
	files: map[string]string{
		"usr/engine.service":                         "[Service]\nType=exec\nExecStart=/opt/eng/v1/bin/llama-server --port 9001\n",
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nExecStart=\nExecStart=/opt/eng/v2/bin/llama-server --port 9001\n",
		"etc/engine.service.d/override.conf":         "[Service]\nExecStart=\nExecStart=/opt/eng/v1/bin/llama-server --port 9001 --verbose\n",
	},
	want:   map[string]string{},
	start:  []string{"/opt/eng/v1/bin/llama-server --port 9001 --verbose"},
	loaded: []string{"/opt/eng/v1/bin/llama-server", "--port", "9001", "--verbose"},
}, {
	name: "reset of the environment",
	files: map[string]string{
		"usr/engine.service": "[Service]\nType=exec\nExecStart=/opt/eng/v1/bin/llama-server\nEnvironment=LD_LIBRARY_PATH=/opt/eng/v1/lib\n",
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nExecStart=\nExecStart=/opt/eng/v2/bin/llama-server\n" +
			"Environment=LD_LIBRARY_PATH=/opt/eng/v2/lib\n",
		"etc/engine.service.d/70-site.conf": "[Service]\nEnvironment=\nEnvironment=HIP_VISIBLE_DEVICES=0\n",
	},
	want:  map[string]string{"HIP_VISIBLE_DEVICES": "0"},
	start: []string{"/opt/eng/v2/bin/llama-server"},
}, {
	name: "sections are exact",
	files: map[string]string{
		"usr/engine.service": "[Unit]\nEnvironment=UNIT=1\n[Service]\nExecStart=/bin/true\n",
		"etc/engine.service.d/10-limit.conf": "[Service]\nEnvironment=A=1\n[Service ]\nEnvironment=A=2\n[X-Fleet]\nRing=canary\n" +
			"[service]\nEnvironment=A=3\n[Unit]\nStartLimitBurst=4\n[Service]\nEnvironment=B=4\nenvironment=B=5\n",
	},
	want: map[string]string{"A": "1", "B": "4"},
}, {
	name: "escaped instance",
	unit: `llm@gpu\x2d0.service`,
	files: map[string]string{
		"usr/llm@.service":                     "[Service]\nExecStart=/bin/echo i=%i I=%I p=%p n=%n f=%f\nEnvironment=WHO=unit \"I=%I\" F=%f i=%i\n",
		`etc/llm@gpu\x2d0.service.d/10-a.conf`: "[Service]\nEnvironment=WHO=escaped-dir\n",
		"etc/llm@gpu-0.service.d/10-a.conf":    "[Service]\nEnvironment=WHO=plain-dir\n",
	},
	want:   map[string]string{"WHO": "escaped-dir", "I": "gpu-0", "F": "/gpu-0", "i": `gpu\x2d0`},
	loaded: []string{"/bin/echo", `i=gpu\x2d0`, "I=gpu-0", "p=llm", `n=llm@gpu\x2d0.service`, "f=/gpu-0"},
}, {
	name: "plain instance",
	unit: "llm@gpu-0.service",
	files: map[string]string{
		"usr/llm@.service":                  "[Service]\nExecStart=/bin/echo i=%i I=%I p=%p n=%n f=%f\nEnvironment=WHO=unit \"I=%I\"\n",
		"etc/llm@gpu-0.service.d/10-a.conf": "[Service]\nEnvironment=WHO=plain-dir\n",
	},
	want:   map[string]string{"WHO": "plain-dir", "I": "gpu/0"},
	loaded: []string{"/bin/echo", "i=gpu-0", "I=gpu/0", "p=llm", "n=llm@gpu-0.service", "f=/gpu/0"},
}, {
	name: "environment files",
	files: map[string]string{
		"usr/engine.service":               "[Service]\nExecStart=/bin/true\nEnvironmentFile=FILES/one.env\nEnvironmentFile=-FILES/none.env\n",
		"etc/engine.service.d/zz.conf":     "[Service]\nEnvironment=A=drop-in B=drop-in C=drop-in\n",
		"etc/engine.service.d/zzz.conf":    "[Service]\nEnvironmentFile=FILES/t*.env\nUnsetEnvironment=C D=4 E=other\n",
		"files/one.env":                    "A=one\nD=4\nE=5 # no comment\n",
		"files/two.env":                    "B = \"two\" 'words' x\nF='a\nb'\nG=a\\\nb\nexport H=1\n# I=1\nJ=\"\\x \\$ \\\"\"\n",
		"files/.tree.env":                  "A=hidden\n",
		"run/engine.service.d/unread.text": "[Service]\nEnvironment=A=unread\n",
	},
	want: map[string]string{"A": "one", "B": "twowordsx", "E": "5 # no comment", "F": "a\nb", "G": "ab", "J": `\x $ "`},
}}

// folders says where the parts of a case go.
type folders struct{ etc, run, usr, files string }

func (f folders) place(path string) string {
	part, rest, _ := strings.Cut(path, "/")
	return filepath.Join(map[string]string{"etc": f.etc, "run": f.run, "usr": f.usr, "files": f.files}[part], rest)
}

// write puts the files of a case in place and takes them away after the test.
func (c unitCase) write(t *testing.T, f folders) {
	t.Helper()
	for name, text := range c.files {
		path := f.place(name)
		target, link := strings.CutPrefix(text, "-> ")
		target = strings.ReplaceAll(target, "FILES", f.files)
		if link {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, path, strings.ReplaceAll(text, "FILES", f.files))
		}
		t.Cleanup(func() {
			os.Remove(path)
			os.Remove(filepath.Dir(path))
		})
	}
}

func (c unitCase) unitName() string {
	if c.unit == "" {
		return "engine.service"
	}
	return c.unit
}

// check compares what we make of a unit with what the case says.
func (c unitCase) check(t *testing.T, u *Unit, specifiers Specifiers) {
	t.Helper()
	settings, err := ReadSettings(u, specifiers)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for key, setting := range settings.Environment() {
		if setting.Unsure != "" {
			t.Errorf("%s is unsure: %s", key, setting.Unsure)
		}
		got[key] = setting.Value
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if c.start == nil {
		return
	}
	var start []string
	for _, value := range settings.Values("Service", "ExecStart") {
		start = append(start, value.Value)
	}
	if diff := cmp.Diff(c.start, start); diff != "" {
		t.Errorf("ExecStart (-want +got):\n%s", diff)
	}
}

// TestCases reads the cases from the files alone.
func TestCases(t *testing.T) {
	for _, c := range unitCases {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			f := folders{etc: root + "/etc", run: root + "/run", usr: root + "/usr", files: root + "/files"}
			c.write(t, f)
			u := &Unit{ID: c.unitName(), SearchPath: []string{f.etc, f.run, f.usr}}
			u.FragmentPath = filepath.Join(f.usr, u.ID)
			if _, err := os.Stat(u.FragmentPath); err != nil {
				u.FragmentPath = filepath.Join(f.usr, "llm@.service")
			}
			u, err := u.Rescan()
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, u, nil)
		})
	}
}

// TestCasesReal has a real systemd judge both the cases and our reading of them.
func TestCasesReal(t *testing.T) {
	if !inside(t, false) {
		return
	}
	m, ctx := connectHere(t), limited(t)
	specifiers, err := m.Specifiers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f := folders{
		etc: userUnitDir(t),
		run: filepath.Join(specifiers['t'], "systemd/user"),
		usr: filepath.Join(specifiers['h'], ".local/share/systemd/user"),
	}
	f.files = filepath.Join(filepath.Dir(f.etc), "files")
	version, err := m.property(ctx, managerPath, managerInterface, "Version")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range unitCases {
		if c.v252 && majorVersion(fmt.Sprint(version)) != 252 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.write(t, f)
			if c.start != nil || c.loaded != nil {
				reload(t, m)
				u, err := m.Unit(ctx, c.unitName())
				if err != nil {
					t.Fatal(err)
				}
				c.check(t, u, specifiers)
				if c.loaded != nil && (len(u.ExecStart) != 1 || !cmp.Equal(u.ExecStart[0].Argv, c.loaded)) {
					t.Errorf("systemd starts %q, want %q", u.ExecStart, c.loaded)
				}
			}

			c.start = nil // the probe changes it
			out := filepath.Join(t.TempDir(), "environ")
			probe := unitCase{files: map[string]string{"run/" + c.unitName() + ".d/zzzz-probe.conf": "[Service]\nType=oneshot\nExecStart=\n" +
				"ExecStop=\nExecStart=/bin/cp /proc/self/environ " + out + "\n"}}
			probe.write(t, f)
			reload(t, m)
			u, err := m.Unit(ctx, c.unitName())
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, u, specifiers)
			checkReadings(t, u, specifiers)
			if result, err := m.Restart(ctx, u.ID); err != nil || result != "done" {
				t.Fatalf("restart: %q, %v", result, err)
			}
			got, _ := readEnviron(t, out)
			own := map[string]string{}
			for key, value := range got {
				if _, ok := c.want[key]; ok || len(key) < 3 || strings.Contains(key, "_PATH") {
					own[key] = value
				}
			}
			delete(own, "_")
			if diff := cmp.Diff(c.want, own); diff != "" {
				t.Errorf("environment of the process (-want +got):\n%s", diff)
			}
		})
	}
}

func reload(t *testing.T, m *Manager) {
	t.Helper()
	if err := m.Reload(limited(t)); err != nil {
		t.Fatal(err)
	}
}
