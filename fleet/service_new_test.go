package fleet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// newServiceHost is a host without a manager, with one package.
func newServiceHost(t *testing.T) (*Host, *store.Package) {
	t.Helper()
	d, _ := dataHome(t, "1bit-hrx-a/1bit", "1bit-hrx-a/hrx/llama/bin/llama-server")
	st := store.Open(d, t.TempDir())
	p, err := st.Import(t.Context(), d+"/1bit-hrx-a")
	if err != nil {
		t.Fatal(err)
	}
	return &Host{
		Scope: systemd.ScopeUser, Store: st, UnitDir: filepath.Join(t.TempDir(), "units"), Root: t.TempDir(), User: "ai",
		Connect: func(context.Context) (*systemd.Manager, error) { return nil, systemd.ErrNoBus },
	}, p
}

func TestNewService(t *testing.T) {
	h, p := newServiceHost(t)
	args := []string{"serve", "-m", "/models/a b.gguf", "--x=$HOME 100%", ";", "", `back\slash "q"`, "ä"}
	n := NewService{Name: "llm", Package: p, Program: "1bit", Args: args, DryRun: true}
	dry, err := h.NewService(t.Context(), n)
	if err != nil || dry.Changed || dry.Unit != "llm.service" || !absentPath(h.UnitDir) {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	n.DryRun = false
	made, err := h.NewService(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(h.UnitDir, "llm.service"))
	if err != nil || string(data) != dry.Text || made.Text != dry.Text || !made.Changed {
		t.Errorf("written %q, %v; the dry run said %q", data, err, dry.Text)
	}
	if want := []string{"systemctl --user daemon-reload", "systemctl --user enable --now llm.service", "loginctl enable-linger ai"}; !slices.Equal(made.Next, want) {
		t.Errorf("next %q", made.Next)
	}
	want := append([]string{envProgram, filepath.Join(p.Path, "1bit")}, args...)
	if got := startedBy(t, made.Text); !slices.Equal(got, want) {
		t.Errorf("it starts %q, want %q", got, want)
	}
	for _, line := range []string{
		"Environment=\"ONEBIT_LLAMA_SERVER=" + p.Path + "/hrx/llama/bin/llama-server\"\n", "Type=exec\n", "Restart=always\n", "WantedBy=default.target\n",
		"\n[Unit]\n", "StartLimitIntervalSec=",
	} {
		if !strings.Contains(made.Text, line) {
			t.Errorf("the unit has no %q:\n%s", line, made.Text)
		}
	}
	if strings.Index(made.Text, "StartLimit") > strings.Index(made.Text, "[Service]") {
		t.Error("the start limit is not in [Unit]")
	}
	if _, err := h.NewService(t.Context(), n); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "llm.service is there already") {
		t.Errorf("again: %v", err)
	}
	h.Scope = systemd.ScopeSystem
	n.Name, n.Program, n.Args = "other", "llama-server", nil
	if made, err = h.NewService(t.Context(), n); err != nil || !strings.Contains(made.Text, "WantedBy=multi-user.target") || strings.Contains(made.Text, programVariable) ||
		len(made.Next) != 2 || strings.Contains(made.Next[0], "--user") {
		t.Errorf("of the system: %+v, %v", made, err)
	}
}

// startedBy is what a unit starts, as systemd reads it.
func startedBy(t testing.TB, text string) []string {
	t.Helper()
	f, err := systemd.ParseFile("llm.service", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := systemd.Effective([]*systemd.File{f}, systemd.ReadEnvironmentFiles, systemd.Specifiers{})
	if len(s.Start()) != 1 || len(s.Problems) > 0 {
		t.Fatalf("it starts %v, problems %v\n%s", s.Start(), s.Problems, text)
	}
	argv, unsure := s.Argv(s.Start()[0], map[string]string{})
	if unsure != "" {
		t.Fatalf("unsure: %s", unsure)
	}
	return argv
}

func TestNewServiceRefuses(t *testing.T) {
	h, p := newServiceHost(t)
	vendor := filepath.Join(h.Root, "usr/lib/systemd/user")
	for _, path := range []string{vendor + "/vendor.service", vendor + "/left.service.d/x.conf"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(h.UnitDir, 0o755), os.Symlink("/dev/null", h.UnitDir+"/masked.service")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, program string
		args          []string
		want          error
		text          string
	}{
		{"vendor", "1bit", nil, ErrRefused, vendor + "/vendor.service"},
		{"left", "1bit", nil, ErrRefused, "left.service.d/x.conf"},
		{"masked", "1bit", nil, ErrRefused, "masked.service"},
		{"llm@", "1bit", nil, ErrName, "template"},
		{"llm@a", "1bit", nil, ErrName, "template"},
		{"a b", "1bit", nil, ErrName, "a b"},
		{"../x", "1bit", nil, ErrName, "../x"},
		{"x", "zinc", nil, fs.ErrNotExist, "llama-server"},
		{"x", "1bit", []string{"\xff"}, ErrRefused, "UTF-8"},
	} {
		out, err := h.NewService(t.Context(), NewService{Name: tt.name, Package: p, Program: tt.program, Args: tt.args})
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %+v, %v; want %v and %q", tt.name, out, err, tt.want, tt.text)
		}
	}
	if entries, err := os.ReadDir(h.UnitDir); err != nil || len(entries) != 1 {
		t.Errorf("refusals left %v, %v", entries, err)
	}
}

// Whatever the arguments, the program gets them as they are.
func FuzzNewServiceArguments(f *testing.F) {
	for _, seed := range []string{"", "a b", "$A", "${A}", "%h", ";", `\;`, "'", "\t\n", "-m", "#", "ä\u2028", `a\`} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		if !utf8.ValidString(one) || !utf8.ValidString(two) || strings.ContainsRune(one+two, 0) || len(one)+len(two) > 4000 {
			return
		}
		h := &Host{Scope: systemd.ScopeUser}
		p := &store.Package{Path: "/p/1bit-hrx-a", Manifest: &packager.Manifest{EntryPoints: map[string]string{"llama-server": "bin/llama-server"}}}
		text, err := h.unitText("x.service", NewService{Package: p, Program: "llama-server", Args: []string{one, two}})
		if err != nil {
			t.Fatal(err)
		}
		if got := startedBy(t, text); !slices.Equal(got, []string{envProgram, "/p/1bit-hrx-a/bin/llama-server", one, two}) {
			t.Fatalf("%q and %q are handed over as %q:\n%s", one, two, got, text)
		}
	})
}
