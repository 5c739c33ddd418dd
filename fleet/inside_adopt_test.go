package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
)

// recorder is a program of a package that writes down how it was started.
const recorder = `#!/bin/sh
{ printf '%%s\n' "$0" "$@"; env | grep -v -E '^(INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|_|SHLVL|PWD|OLDPWD|ONEBIT_(LLAMA_SERVER|PROGRAM|ARG_.*))=' | sort; } >%s
`

// recorders makes two packages whose programs write down how they were started, for the length of a test.
func (in *inside) recorders(t *testing.T) {
	t.Helper()
	for _, id := range []string{"adopt01", "adopt02"} {
		dir := filepath.Join(in.home, ".local/share/1bit-hrx-"+id)
		for name, data := range map[string]string{
			"hrx/llama/bin/llama-server": fmt.Sprintf(recorder, in.record()), "1bit": fmt.Sprintf(recorder, in.record()),
			"lib/x.so": "", "share/mm proj.gguf": "", "lib2/y.so": "",
		} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := in.host.Store.Import(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		in.pkgs[id] = p
		t.Cleanup(func() {
			delete(in.pkgs, id)
			os.RemoveAll(dir)
		})
	}
}

func (in *inside) record() string { return filepath.Join(in.home, "record") }

// written makes a unit by hand that is not started, and returns it with the two packages of recorders and the file that
// their programs write.
func (in *inside) written(t *testing.T, unit, text string, dropIns map[string]string) (s *service, one, two *store.Package, record string) {
	t.Helper()
	record = in.record()
	s = &service{T: t, inside: in, unit: unit}
	s.write(unit, text)
	for name, data := range dropIns {
		s.write(unit+".d/"+name, data)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_, _ = in.m.Stop(ctx, unit)
		if err := errors.Join(os.RemoveAll(s.path(unit+".d")), os.Remove(s.path(unit)), os.RemoveAll(record), in.m.Reload(ctx)); err != nil {
			t.Error(err)
		}
	})
	s.reload()
	return s, in.pkgs["adopt01"], in.pkgs["adopt02"], record
}

// run starts a oneshot unit and returns what its program wrote down.
func (s *service) run(record string) string {
	s.Helper()
	_ = os.Remove(record)
	if result, err := s.m.Start(s.Context(), s.unit); err != nil || result != "done" {
		s.Fatalf("start %s: %s, %v", s.unit, result, err)
	}
	data, err := os.ReadFile(record)
	if err != nil {
		s.Fatal(err)
	}
	return string(data)
}

func (s *service) adopt() *fleet.Adoption {
	s.Helper()
	out, err := s.host.Adopt(s.Context(), s.unit, false)
	if err != nil {
		s.Fatalf("adopt: %v", err)
	}
	return out
}

// tryAdopt is an adopt for fails.
func (s *service) tryAdopt(dry bool) func() (*fleet.Outcome, error) {
	return func() (*fleet.Outcome, error) {
		_, err := s.host.Adopt(s.Context(), s.unit, dry)
		return nil, err
	}
}

// Every way to write a unit starts the same program with the same arguments and environment before adopt, after it,
// after a switch there and back, and in the end.
func testAdoptSpellings(t *testing.T, in *inside) {
	in.recorders(t)
	const p = "%h/.local/share/1bit-hrx-adopt01"
	server := p + "/hrx/llama/bin/llama-server"
	for name, tt := range map[string]struct {
		text    string
		dropIns map[string]string
	}{
		"plain":        {"ExecStart=" + server + " -m %h/m.gguf --port 1 $$x ${NOT_SET} $WORDS\nEnvironment='WORDS=a \"b c\" d'\n", nil},
		"quotes":       {`ExecStart="` + server + `" "a  b" 'c"d' \x41\"\\ "--mmproj=` + p + `/share/mm proj.gguf" ";" \; 100%% %%h` + "\n", nil},
		"continued":    {"ExecStart=" + server + " \\\n  --one \\\n# a comment\\\n ; another\n  --two\\\n\n", nil},
		"prefixes":     {"ExecStart=-" + server + " x\n", nil},
		"a shell":      {"ExecStart=/bin/sh -c 'X=1; exec " + server + " \"$$X\" \"$${X}\" ${WORDS} 5%%'\nEnvironment=WORDS=w\n", nil},
		"env":          {"ExecStart=/usr/bin/env LD_LIBRARY_PATH=" + p + "/lib:/x:" + p + "/lib2 " + server + " a\n", nil},
		"options":      {"ExecStart=" + p + "/1bit serve --lib " + p + "/lib --lib=" + p + "/lib2 -x\n", nil},
		"a draft":      {"ExecStart=" + p + "/1bit serve --draft " + server + "\nInaccessiblePaths=-/root\nBindReadOnlyPaths=-/opt:/opt\n", nil},
		"two commands": {"ExecStart=/bin/true ; " + server + " a\nExecStart=-/bin/false\n", nil},
		"byte order mark, CRLF, no last line": {"ExecStart=/bin/false\n", map[string]string{
			"hrx.conf": "\ufeff[Service]\r\nExecStart=\r\nExecStart=" + server + " \\\r\n --x\r\nEnvironment=LD_LIBRARY_PATH=" + p + "/lib",
		}},
		"drop-ins": {"ExecStart=/bin/false\n", map[string]string{
			"10-start.conf": "[Service]\nExecStart=\nExecStart=" + server + " --device hrx\n",
			"hrx.conf":      "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=" + server + " A=1\nEnvironment=\"LD_LIBRARY_PATH=" + p + "/lib:/usr/x\" B=2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, two, record := in.written(t, "spelt.service", "[Service]\nType=oneshot\n"+tt.text, tt.dropIns)
			before, owned := s.run(record), s.snapshot()
			out := s.adopt()
			if !out.Changed || out.From != "hrx-adopt01" || out.To != out.From || len(out.TakenOver) == 0 {
				t.Errorf("adopt: %s", show(out))
			}
			if again := s.adopt(); again.Changed || again.Diff != "" {
				t.Errorf("adopted again: %s", show(again))
			}
			if after := s.run(record); after != before {
				t.Errorf("started by adopt:\n%s\nbefore:\n%s", after, before)
			}
			// A service that was never seen serving goes back to the adopted state all the same.
			sw, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
			s.do("switch", sw, err)
			want := strings.ReplaceAll(before, "adopt01", "adopt02")
			if after := s.run(record); after != want {
				t.Errorf("started by a switch:\n%s\nwant:\n%s", after, want)
			}
			s.fails("unadopt with another package", fleet.ErrRefused, []string{"hrx-adopt02", "rollback"}, func() (*fleet.Outcome, error) {
				return in.host.Unadopt(t.Context(), s.unit)
			})
			if back := s.rollback(); !back.Changed || back.To != "hrx-adopt01" {
				t.Errorf("rollback: %s", show(back))
			}
			if after := s.run(record); after != before {
				t.Errorf("started by a rollback:\n%s\nbefore:\n%s", after, before)
			}
			if st := s.status(); strings.Contains(strings.Join(st.Warnings, "\n"), "since then") {
				t.Errorf("no line has changed, and status warns: %q", st.Warnings)
			}
			gone, err := in.host.Unadopt(t.Context(), s.unit)
			s.do("unadopt", gone, err)
			if now := s.snapshot(); now != owned {
				t.Errorf("after unadopt the folder holds\n%s\nbefore:\n%s", now, owned)
			}
			if _, err := os.Stat(s.path(s.unit + ".d")); tt.dropIns == nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder that adopt made is still there: %v", err)
			}
			if after := s.run(record); after != before {
				t.Errorf("started in the end:\n%s\nbefore:\n%s", after, before)
			}
			acts := s.chain()
			if last := acts[len(acts)-4:]; !slices.Equal(last, []string{
				"adopt adopt01>adopt01 armed", "switch adopt01>adopt02 armed", "rollback adopt02>adopt01 armed", "unadopt adopt01>adopt01 armed",
			}) {
				t.Errorf("history %q", last)
			}
		})
	}
}

func testAdoptRefusals(t *testing.T, in *inside) {
	in.recorders(t)
	const p = "%h/.local/share/1bit-hrx-adopt01"
	server, unit := p+"/hrx/llama/bin/llama-server", "[Service]\nType=oneshot\n"
	env := filepath.Join(in.home, "adopt.env")
	if err := os.WriteFile(env, []byte("ONEBIT_LLAMA_SERVER="+in.home+"/.local/share/1bit-hrx-adopt01/1bit\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(env) })
	start := "ExecStart=" + server + "\n"
	for name, tt := range map[string]struct {
		text    string
		dropIns map[string]string
		want    []string
	}{
		"nothing":            {"ExecStart=/bin/true\n", nil, []string{"nothing to adopt"}},
		"a later drop-in":    {"ExecStart=/bin/true\nEnvironment=A=" + server + "\n", map[string]string{"zzz.conf": "[Service]\n\nEnvironment=A=" + server + "\n"}, []string{"zzz.conf:3"}},
		"a later command":    {"", map[string]string{"zzz.conf": "[Service]\nExecStart=\n" + start}, []string{"zzz.conf:3", "ExecStart"}},
		"a later reset":      {start, map[string]string{"zzz.conf": "[Service]\nExecStart=\nExecStart=/bin/true\n"}, []string{"nothing to adopt"}},
		"EnvironmentFile":    {"ExecStart=/bin/true\nEnvironmentFile=" + env + "\n", nil, []string{env + ":1", "Environment="}},
		"UnsetEnvironment":   {"ExecStart=/bin/true\nEnvironment=A=" + server + "\nUnsetEnvironment=A\n", nil, []string{"spelt.service:5", "UnsetEnvironment"}},
		"ExecStartPre":       {start + "ExecStartPre=" + p + "/1bit --version\n", nil, []string{"spelt.service:4", "ExecStartPre="}},
		"ExecReload":         {start + "ExecReload=/bin/sh -c '" + p + "/1bit reload'\n", nil, []string{"spelt.service:4"}},
		"WorkingDirectory":   {start + "WorkingDirectory=" + p + "\n", nil, []string{"spelt.service:4", "WorkingDirectory"}},
		"a condition":        {start + "[Unit]\nConditionPathExists=" + p + "/1bit\n", nil, []string{"spelt.service:5"}},
		"two packages":       {start + "Environment=LD_LIBRARY_PATH=%h/.local/share/1bit-hrx-adopt02/lib\n", nil, []string{"2 packages", "spelt.service:3", "spelt.service:4"}},
		"no manifest":        {"ExecStart=%h/.local/share/1bit-hrx-byhand/bin/llama-server\n", nil, []string{"1bit pkg import " + in.home + "/.local/share/1bit-hrx-byhand"}},
		"(deleted)":          {"ExecStart=" + server + " (deleted) --port 1\n", nil, []string{"spelt.service:3", "(deleted)"}},
		"no expansion":       {"ExecStart=:" + server + "\n", nil, []string{"spelt.service:3", "\":\""}},
		"another name":       {"ExecStart=@" + server + " llama\n", nil, []string{"spelt.service:3", "\"@\""}},
		"a shell's home":     {"ExecStart=/bin/sh -c 'exec $$HOME/.local/share/1bit-hrx-adopt01/1bit'\n", nil, []string{"spelt.service:3", "$HOME"}},
		"a whole command":    {"ExecStart=/usr/bin/env $CMD\nEnvironment='CMD=" + server + " -m /m//x'\n", nil, []string{"CMD names"}},
		"no env":             {start + "InaccessiblePaths=-/usr/bin/env\n", nil, []string{"spelt.service:4", "/usr/bin/env"}},
		"nothing to run":     {start + "NoExecPaths=/\nExecPaths=%h /usr/lib\n", nil, []string{"spelt.service:4", "NoExecPaths"}},
		"another /usr/bin":   {start + "BindReadOnlyPaths=%h:/bin:rbind\n", nil, []string{"spelt.service:4", "BindReadOnlyPaths"}},
		"an empty /usr/bin":  {start + "TemporaryFileSystem=/usr/bin:ro\n", nil, []string{"spelt.service:4", "TemporaryFileSystem"}},
		"inside an argument": {"ExecStart=/bin/true\nEnvironment=\"ARGS=--lib " + p + "/lib\"\n", nil, []string{"spelt.service:4", "ARGS"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, _ := in.written(t, "spelt.service", unit+tt.text, tt.dropIns)
			byHand := filepath.Join(in.home, ".local/share/1bit-hrx-byhand/bin")
			if err := errors.Join(os.MkdirAll(byHand, 0o755), os.WriteFile(filepath.Join(byHand, "llama-server"), []byte("#!/bin/sh\n"), 0o755)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(filepath.Dir(byHand)) })
			for _, dry := range []bool{true, false} {
				s.fails(name, fleet.ErrRefused, tt.want, s.tryAdopt(dry))
			}
			if _, err := os.Stat(s.path(s.unit + ".d")); tt.dropIns == nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a refused adopt left the folder behind: %v", err)
			}
		})
	}
	t.Run("edits that are not loaded", func(t *testing.T) {
		s, _, _, record := in.written(t, "spelt.service", unit+"RemainAfterExit=yes\n"+start, nil)
		s.run(record) // keeps it loaded
		s.write("spelt.service.d/hrx.conf", "[Service]\nEnvironment=A="+server+"\n")
		s.fails("not loaded", fleet.ErrRefused, []string{"daemon-reload"}, s.tryAdopt(false))
	})
	t.Run("an instance, and a variable of the manager's", func(t *testing.T) {
		s, _, _, record := in.written(t, "spelt@.service", unit+"ExecStart="+server+" --alias %i\n", nil)
		s.unit = "spelt@one.service"
		variable := []string{"--user", "set-environment", "ONEBIT_LLAMA_SERVER=/usr/bin/other"}
		if out, err := exec.CommandContext(t.Context(), "systemctl", variable...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { exec.Command("systemctl", "--user", "unset-environment", "ONEBIT_LLAMA_SERVER").Run() })
		before := s.run(record)
		if a := s.adopt(); !strings.Contains(a.Diff, "+ExecStart=/usr/bin/env ${ONEBIT_PROGRAM} --alias %i\n") {
			t.Errorf("adopted: %s", a.Diff)
		}
		if after := s.run(record); after != before {
			t.Errorf("started by adopt:\n%s\nbefore:\n%s", after, before)
		}
		gone, err := in.host.Unadopt(t.Context(), s.unit)
		s.do("unadopt", gone, err)
		if files := s.files(); len(files) != 0 {
			t.Errorf("left behind: %v", files)
		}
	})
	t.Run("no leave, and a hold", func(t *testing.T) {
		s, _, _, _ := in.written(t, "spelt.service", unit+start, nil)
		other := *in.host
		other.Authorise = func(act string, notes []string) error {
			return fmt.Errorf("%w: not you: %s: %q", fleet.ErrRefused, act, notes)
		}
		s.fails("no leave", fleet.ErrRefused, []string{"not you: adopt spelt.service", s.path("spelt.service.d/zz-1bit.conf")}, func() (*fleet.Outcome, error) {
			_, err := other.Adopt(t.Context(), s.unit, false)
			return nil, err
		})
		held, err := in.host.Hold(t.Context(), s.unit, "benchmarks run", time.Time{})
		s.do("hold", held, err)
		s.fails("held", fleet.ErrRefused, []string{"benchmarks run", "unhold"}, s.tryAdopt(false))
	})
	t.Run("after a rollback", func(t *testing.T) {
		s, _, two, _ := in.written(t, "spelt.service", unit+"ExecStart=/bin/true\nEnvironment=A="+server+"\n", nil)
		out, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
		s.do("switch", out, err)
		s.rollback()
		if a := s.adopt(); !a.Changed || len(a.Blocked) != 1 || a.Blocked[0].Package != "hrx-adopt02" {
			t.Errorf("adopted: %s", show(a))
		}
		s.wantFiles(ours)
		if back := s.rollback(); back.Changed || !strings.Contains(strings.Join(back.Notes, " "), "nothing to roll back") {
			t.Errorf("rollback: %s", show(back))
		}
	})
	t.Run("switched", func(t *testing.T) {
		s, _, two, _ := in.written(t, "spelt.service", unit+"ExecStart=/bin/true\nEnvironment=A="+server+"\n", nil)
		out, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
		s.do("switch", out, err)
		s.fails("switched", fleet.ErrRefused, []string{"unswitch"}, s.tryAdopt(false))
		s.fails("not adopted", fleet.ErrRefused, []string{"not adopted"}, func() (*fleet.Outcome, error) {
			return in.host.Unadopt(t.Context(), s.unit)
		})
	})
}

// A line that adopt took over is warned about once it says something else, and not when it only moved.
func testAdoptDrift(t *testing.T, in *inside) {
	in.recorders(t)
	const server = "%h/.local/share/1bit-hrx-adopt01/hrx/llama/bin/llama-server"
	const hrx = "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=" + server + "\nEnvironment=HSA_USERPTR_FOR_PAGED_MEM=0\n"
	unit := "[Service]\nType=oneshot\nExecStart=" + server + " --port 1\n"
	s, _, two, _ := in.written(t, "spelt.service", unit, map[string]string{"hrx.conf": hrx})
	s.adopt()
	out, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
	s.do("switch", out, err) // what was taken over is remembered from then on
	at := s.path(s.unit + ".d/hrx.conf")
	st := s.status()
	if len(st.Adopted) != 2 || st.Adopted[0].File != s.path(s.unit) || st.Adopted[0].Line != 3 || st.Adopted[1].File != at || st.Adopted[1].Line != 2 {
		t.Errorf("adopted %s", show(st.Adopted))
	}
	if !slices.ContainsFunc(st.Shadowed, func(p fleet.Place) bool { return p.File == s.path(s.unit) && p.Setting == "ExecStart" }) {
		t.Errorf("shadowed %s", show(st.Shadowed))
	}
	for _, tt := range []struct {
		name, unit, hrx string
		more            string // another drop-in
		want            []string
	}{
		{"untouched", unit, hrx, "", nil},
		{"comments and other lines", "# new\n\n" + unit + "Nice=1\n", "\n# new\n" + hrx + "Environment=B=1\n", "", nil},
		{"written otherwise, read alike", "[Service]\nType=oneshot\nExecStart =\t" + server + " \\\n--port 1\n",
			strings.ReplaceAll(hrx, "Environment=O", "Environment = O"), "", []string{s.path(s.unit) + ":3", "edited or removed"}},
		{"edited", unit, strings.Replace(hrx, "llama-server\n", "llama-server A=1\n", 1), "", []string{at + ":2 was edited", "A=1", "unadopt"}},
		{"command edited", strings.Replace(unit, "--port 1", "--port 2", 1), hrx, "", []string{s.path(s.unit) + ":3 was edited", "--port 2"}},
		{"removed", unit, "[Service]\nEnvironment=HSA_USERPTR_FOR_PAGED_MEM=0\n", "", []string{at + ":2", "edited or removed"}},
		{"moved to another file", unit, "[Service]\n", hrx, []string{at + ":2 is at", "more.conf:2"}},
		{"another one added", unit, hrx, "[Service]\nExecStart=\nExecStart=" + server + " --port 3\n", []string{"more.conf:3", "--port 3", "was added"}},
	} {
		s.write(s.unit, tt.unit)
		s.write(s.unit+".d/hrx.conf", tt.hrx)
		if tt.more != "" {
			s.write(s.unit+".d/more.conf", tt.more)
		}
		s.reload()
		got := slices.DeleteFunc(s.status().Warnings, func(w string) bool { return !strings.Contains(w, "was adopted") })
		if len(got) > 1 || (len(got) == 0) != (tt.want == nil) {
			t.Errorf("%s: warnings %q", tt.name, got)
		}
		for _, want := range tt.want {
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%s: %q does not say %q", tt.name, got, want)
			}
		}
		if tt.more != "" {
			s.remove(s.unit + ".d/more.conf")
		}
	}
	s.write(s.unit, strings.Replace(unit, "--port 1", "--port 2", 1))
	s.reload()
	if _, err := in.host.Adopt(t.Context(), s.unit, false); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("adopt after an edit: %v", err)
	}
	// As status advises: back to the package that the lines name, give it back, adopt again.
	s.rollback()
	gone, err := in.host.Unadopt(t.Context(), s.unit)
	s.do("unadopt", gone, err)
	if again := s.adopt(); !strings.Contains(again.Diff, "--port 2") {
		t.Errorf("adopted again: %s", show(again))
	}
}
