package fleet_test

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

const packageLine = "Environment=ONEBIT_LLAMA_SERVER=%h/.local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server\n"

// testSurvey finds services by every trace that they leave, and tells a unit that is none of ours apart.
func testSurvey(t *testing.T, in *inside) {
	s := &service{T: t, inside: in, unit: "survey.service"}
	run := "[Service]\nExecStart=/bin/sleep infinity\nRestart=always\n"
	files := map[string]string{
		"survey.service":                   "[Unit]\nAfter=survey-pinned.service\n" + run + packageLine + "StartLimitIntervalSec=1min\n[Install]\nWantedBy=multi-user.target\n",
		"survey-ahead.service":             run + packageLine,
		"survey-edited.service":            run + packageLine,
		"survey-pinned.service":            run + packageLine, // loaded for the sake of another, and stopped
		"survey-orphan.service":            "[Service]\nExecStart=/bin/sh -c 'exec sleep infinity'\n" + packageLine,
		"survey-exec.service":              "[Service]\nExecStart=%h/.local/share/1bit-hrx-aaa0001/1bit serve\n",
		"survey-missing.service":           run + "Environment=ONEBIT_LLAMA_SERVER=%h/.local/share/1bit-hrx-9990001/bin/x\n",
		"survey-file.service":              run + "EnvironmentFile=%h/survey.env\n",
		"survey-link.service":              run + "Environment=LD_LIBRARY_PATH=%h/current/lib\n",
		"survey-folder.service":            run + "WorkingDirectory=-%h/.local/share/1bit-hrx-aaa0001/hrx\n",
		"survey-deleted.service":           "[Service]\nExecStart=%h/.local/share/1bit-hrx-aaa0001/1bit (deleted) serve\n",
		"survey-gone.service":              run + packageLine,
		"survey-look.service":              "[Service]\nExecStart=/usr/bin/llama-server --port 1\n",
		"survey-front.service":             "[Service]\nExecStart=/usr/bin/1bit serve -m x\nEnvironment=ONEBIT_LLAMA_SERVER=/build/9/hrx/llama/bin/llama-server\n",
		"survey-other.service":             run,
		"survey-al@.service":               run + strings.ReplaceAll(packageLine, "aaa0001", "bbb0002"),
		"survey-al@x.service.d/a.conf":     "[Service]\nEnvironment=A=1\n",
		"survey-bl@.service.d/z.conf":      "[Service]\nEnvironmentFile=%h/survey.env\n", // of a template that is another name
		"survey@.service":                  run,
		"survey@.service.d/hrx.conf":       "[Service]\n" + packageLine,
		`survey@gpu\x2d0.service.d/a.conf`: "[Service]\nEnvironment=A=1\n",
		"survey@gpu-0.service.d/a.conf":    "[Service]\nEnvironment=A=1\n",
	}
	for name, text := range files {
		s.write(name, text)
	}
	for path, text := range map[string]string{filepath.Join(in.home, "survey.env"): "ONEBIT_LLAMA_SERVER=" + in.pkgs["aaa0001"].Path + "/1bit\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(in.home, "current")
	if err := errors.Join(os.Symlink(in.pkgs["aaa0001"].Path, current), os.Symlink("survey.service", s.path("alias.service")),
		os.Symlink("survey-al@.service", s.path("survey-bl@.service"))); err != nil {
		t.Fatal(err)
	}
	running := []string{"survey.service", "survey-edited.service", "survey-orphan.service"}
	t.Cleanup(func() {
		for _, unit := range running {
			if _, err := in.m.Stop(context.Background(), unit); err != nil {
				t.Error(err)
			}
		}
		left, _ := filepath.Glob(s.path("survey*"))
		for _, path := range append(left, s.path("alias.service"), current, filepath.Join(in.home, "survey.env")) {
			if err := os.RemoveAll(path); err != nil {
				t.Error(err)
			}
		}
		if err := in.m.Reload(context.Background()); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(30 * time.Millisecond) // the files are older than the reload, by more than a tick
	s.reload()
	for _, unit := range running {
		if result, err := in.m.Start(t.Context(), unit); err != nil || result != "done" {
			t.Fatalf("start %s: %s, %v", unit, result, err)
		}
	}
	s.unit = "survey-gone.service"
	s.switchTo("bbb0002")
	s.unit = `survey@gpu\x2d0.service`
	s.switchTo("bbb0002")

	// Only what is loaded, or what runs, still names a package.
	old := time.Now().Add(-time.Hour)
	s.write("survey-orphan.service", run)
	s.remove("survey-gone.service")
	s.reload()
	s.write("survey-edited.service", run)
	s.write("survey-ahead.service", run+strings.ReplaceAll(packageLine, "aaa0001", "bbb0002"))
	s.write("survey-pinned.service", run)
	for _, name := range []string{"survey-edited.service", "survey-pinned.service"} {
		if err := os.Chtimes(s.path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}

	survey, err := in.host.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]fleet.Service{}
	for _, one := range survey.Services {
		if _, twice := found[one.Unit]; twice {
			t.Errorf("%s is there twice", one.Unit)
		}
		found[one.Unit] = one
	}
	for unit, want := range map[string]struct{ armed, warning string }{
		"survey.service":          {"hrx-aaa0001", "default.target"},
		"survey-ahead.service":    {"hrx-bbb0002", ""},
		"survey-edited.service":   {"hrx-aaa0001", "reload by anybody"},
		"survey-pinned.service":   {"hrx-aaa0001", "reload by anybody"},
		"survey-orphan.service":   {"", "restart is pending"},
		"survey-exec.service":     {"hrx-aaa0001", "adopt"},
		"survey-missing.service":  {"hrx-9990001", "is not there"},
		"survey-file.service":     {"hrx-aaa0001", ""},
		"survey-link.service":     {"hrx-aaa0001", ""},
		"survey-folder.service":   {"", ""},
		"survey-deleted.service":  {"hrx-aaa0001", `"(deleted)" is a word`},
		"survey-gone.service":     {"", "unswitch survey-gone.service"},
		"survey@gpu-0.service":    {"hrx-aaa0001", ""},
		"survey-al@x.service":     {"hrx-aaa0001", ""},
		`survey@gpu\x2d0.service`: {"hrx-bbb0002", ""},
	} {
		got, ok := found[unit]
		delete(found, unit)
		armed := ""
		if got.Armed != nil {
			armed = got.Armed.Package
		}
		if !ok || armed != want.armed || !strings.Contains(strings.Join(got.Warnings, "\n"), want.warning) {
			t.Errorf("%s: found %v, armed %q, want %q and a warning with %q: %s", unit, ok, armed, want.armed, want.warning, show(got))
		}
		if one, err := in.host.Status(t.Context(), unit); err != nil || show(one[0]) != show(got) {
			t.Errorf("alone %s is\n%s\n(%v), among all\n%s", unit, show(one), err, show(got))
		}
		if strings.Contains(unit, "@gpu-0") && (len(got.Binding) != 1 || got.Binding[0].Of != "template survey@.service" || got.Binding[0].Line != 2) {
			t.Errorf("binding of the template: %s", show(got.Binding))
		}
		if strings.Contains(unit, `\x2d`) && (len(got.Shadowed) != 1 || got.Shadowed[0].Of != "template survey@.service") {
			t.Errorf("shadowed of the template: %s", show(got.Shadowed))
		}
		if unit == "survey.service" && !strings.Contains(strings.Join(got.Warnings, "\n"), "it belongs into [Unit]") {
			t.Errorf("warnings %q", got.Warnings)
		}
		if unit == "survey-gone.service" && got.State != fleet.StateGone {
			t.Errorf("it is %s", got.State)
		}
	}
	for unit := range found {
		if strings.HasPrefix(unit, "survey") || unit == "alias.service" {
			t.Errorf("%s is no service of ours", unit)
		}
	}
	if _, err := os.Lstat(s.path("survey@gpu-0.service.d/zz-1bit.conf")); err == nil {
		t.Error("a switch of one instance wrote into another's folder")
	}

	var alike []string
	for _, one := range survey.Lookalikes {
		alike = append(alike, one.Unit+" "+one.Program)
		if want := map[string]string{"survey-look.service": "adopt", "survey-front.service": "/build/9 is an engine outside"}[one.Unit]; !strings.Contains(one.Hint, want) {
			t.Errorf("%s: hint %q", one.Unit, one.Hint)
		}
	}
	if want := []string{"survey-front.service /build/9/hrx/llama/bin/llama-server", "survey-look.service /usr/bin/llama-server"}; !slices.Equal(alike, want) {
		t.Errorf("look-alikes %q, want %q", alike, want)
	}
	if both, err := in.host.Status(t.Context(), "alias", "survey"); err != nil || len(both) != 1 || both[0].Unit != "survey.service" {
		t.Errorf("an alias and its unit are %s, %v", show(both), err)
	}
	for name, act := range map[string]func() error{
		"status": func() error { _, err := in.host.Status(t.Context(), "survey@"); return err },
		"switch": func() error {
			_, err := in.host.Switch(t.Context(), "survey@.service", in.pkgs["aaa0001"], fleet.SwitchOptions{})
			return err
		},
		"rollback": func() error {
			_, err := in.host.Rollback(t.Context(), "survey@.service", fleet.RollbackOptions{})
			return err
		},
		"history": func() error { _, err := in.host.History(t.Context(), "survey@.service"); return err },
	} {
		if err := act(); !errors.Is(err, systemd.ErrNoUnit) || !strings.Contains(err.Error(), `survey@gpu-0.service, survey@gpu\x2d0.service`) {
			t.Errorf("%s of a template: %v", name, err)
		}
	}
	s.unit = "survey-gone.service"
	if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
		t.Errorf("unswitch what is gone: %v", err)
	}
	s.wantFiles()
}

// testBothScopes has root look at the system's services and at those of a user.
func testBothScopes(t *testing.T, in *inside) {
	s := in.start(t, "both", "aaa0001")
	account, err := user.Lookup(filepath.Base(in.home))
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		t.Fatal(err)
	}
	st := store.Open(in.host.Store.Dir, filepath.Join(in.home, ".local/state/1bit"))
	theirs := &fleet.Host{
		Scope: systemd.ScopeUser, Owner: account.Username, ReadOnly: true, Store: st, StateDir: st.StateDir,
		UnitDir: filepath.Join(in.home, ".config/systemd/user"), Now: time.Now,
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{UID: uid})
		},
	}
	m, err := theirs.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	file := filepath.Join(theirs.UnitDir, "both-theirs.service")
	if err := os.WriteFile(file, []byte("[Service]\nExecStart=/bin/true\n"+packageLine), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
	if err := m.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	survey, err := fleet.SurveyAll(t.Context(), in.host, theirs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range survey.Services {
		got = append(got, string(one.Scope)+" "+one.User+" "+one.Unit+" "+one.Armed.Package)
	}
	if want := []string{"system  both.service hrx-aaa0001", "user ai both-theirs.service hrx-aaa0001"}; !slices.Equal(got, want) {
		t.Errorf("services %q, want %q", got, want)
	}
	if _, err := in.host.Status(t.Context(), "both-theirs"); !errors.Is(err, systemd.ErrNoUnit) || !strings.Contains(err.Error(), "--scope user") {
		t.Errorf("a unit of the other scope: %v", err)
	}
	_, err = theirs.Status(t.Context(), s.unit)
	if !errors.Is(err, systemd.ErrNoUnit) || !strings.Contains(err.Error(), "--scope system") {
		t.Errorf("a unit of the system's: %v", err)
	}
	nobody := *theirs
	nobody.Connect = func(ctx context.Context) (*systemd.Manager, error) {
		return systemd.Connect(ctx, systemd.ConnectOptions{UID: uid, Root: "/nowhere"})
	}
	survey, err = fleet.SurveyAll(t.Context(), &nobody, in.host)
	if err != nil || len(survey.Services) != 1 || len(survey.Notes) != 1 || !strings.Contains(survey.Notes[0], "user manager of ai are not shown") {
		t.Errorf("with one manager: %s, %v", show(survey), err)
	}
	if _, err := fleet.SurveyAll(t.Context(), &nobody); !errors.Is(err, systemd.ErrNoBus) {
		t.Errorf("without a manager: %v", err)
	}
}
