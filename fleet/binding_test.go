package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// dataHome makes package folders with the files given, and a place that finds them.
func dataHome(t testing.TB, files ...string) (string, *place) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := &Host{Store: store.Open(dir, t.TempDir())}
	return dir, h.place()
}

func settingsOf(t *testing.T, files ...string) *systemd.Settings {
	t.Helper()
	var parsed []*systemd.File
	for i := 0; i < len(files); i += 2 {
		f, err := systemd.ParseFile(files[i], []byte(files[i+1]))
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	return systemd.Effective(parsed, systemd.ReadEnvironmentFiles, systemd.Specifiers{})
}

func TestBindingOf(t *testing.T) {
	d, pl := dataHome(t, "1bit-hrx-a/bin/llama-server", "1bit-hrx-a/lib/x.so")
	a, envFile := d+"/1bit-hrx-a", filepath.Join(d, "env")
	if err := os.WriteFile(envFile, []byte("FROM_FILE="+a+"/lib/x.so\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a, filepath.Join(d, "current")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		files []string
		want  binding
	}{
		{"none", []string{"u", "[Service]\nEnvironment=A=1 P=/usr/bin/x\n"}, nil},
		{"plain and list", []string{"u", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=" + a + "/bin/llama-server LD_LIBRARY_PATH=/x:" + a + "/lib\n"},
			binding{{"LD_LIBRARY_PATH", "/x:" + a + "/lib"}, {"ONEBIT_LLAMA_SERVER", a + "/bin/llama-server"}}},
		{"over a link", []string{"u", "[Service]\nEnvironment=S=" + d + "/current/bin/llama-server\n"}, binding{{"S", d + "/current/bin/llama-server"}}},
		{"a removed package", []string{"u", "[Service]\nEnvironment=S=" + d + "/1bit-hrx-gone/bin/x\n"}, binding{{"S", d + "/1bit-hrx-gone/bin/x"}}},
		{"environment file", []string{"u", "[Service]\nEnvironmentFile=" + envFile + "\n"}, binding{{"FROM_FILE", a + "/lib/x.so"}}},
		{"taken away", []string{"u", "[Service]\nEnvironment=S=" + a + "/bin/x\nUnsetEnvironment=S\n"}, binding{{"S", a + "/bin/x"}}},
		{"reset", []string{"u", "[Service]\nEnvironment=S=" + a + "/bin/x\n", "v.conf", "[Service]\nEnvironment=\n"}, binding{{"S", a + "/bin/x"}}},
		{"set elsewhere", []string{"u", "[Service]\nEnvironment=S=" + a + "/bin/x\n", "v.conf", "[Service]\nEnvironment=S=/build/x\n"}, binding{{"S", a + "/bin/x"}}},
		{"only near a package", []string{"u", "[Service]\nEnvironment=S=" + d + "/1bit-staging/bin T=" + d + "/1bit- U=" + d + "/x/1bit-hrx-a/bin\n"}, nil},
		{"a folder of the user's own", []string{"u", "[Service]\nEnvironment=LLAMA_CACHE=" + d + "/1bit-cache/lib A=" + d + "/1bit-model-cache/x B=" + d + "/1bit-model-cache\n"}, nil},
	} {
		got := bindingOf(settingsOf(t, tt.files...), pl)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBindingMove(t *testing.T) {
	d, pl := dataHome(t, "1bit-hrx-a/bin/s", "1bit-hrx-a/lib/x", "1bit-hrx-b/bin/s", "1bit-hrx-b/lib/x", "1bit-hrx-c/bin/s")
	a, b, c := d+"/1bit-hrx-a", d+"/1bit-hrx-b", d+"/1bit-hrx-c"
	from := binding{{"LD_LIBRARY_PATH", a + "/lib/:/usr/lib:" + c + "/lib"}, {"S", a + "/bin/s"}}
	got, err := from.move(pl, b)
	if err != nil {
		t.Fatal(err)
	}
	want := binding{{"LD_LIBRARY_PATH", b + "/lib/:/usr/lib:" + b + "/lib"}, {"S", b + "/bin/s"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := from.move(pl, c); !errors.Is(err, ErrRefused) {
		t.Errorf("to a package without lib: %v", err)
	}
	if _, err := (binding{{"CMD", a + "/bin/s -m /m//x"}}).move(pl, b); !errors.Is(err, ErrRefused) {
		t.Errorf("a whole command: %v", err)
	}
	if got, err := (binding{{"X", a + "/lib:" + a + "/lib64"}}).move(pl, b); err != nil || got[0].Value != b+"/lib:"+b+"/lib64" {
		t.Errorf("what the package lacks already: %v, %v", got, err)
	}
	half := binding{{"ARGS", "--lib " + a + "/lib"}}
	if _, err := half.move(pl, b); !errors.Is(err, ErrRefused) {
		t.Errorf("a path inside an argument: %v", err)
	}
	names := func(b binding) (out []string) {
		for _, p := range b.packages(pl) {
			out = append(out, p.Name)
		}
		return out
	}
	if got := names(binding{{"A", c + "/x:" + a + "/x"}, {serverVariable, b + "/bin/s"}}); !cmp.Equal(got, []string{"hrx-b", "hrx-c", "hrx-a"}) {
		t.Errorf("packages %v", got)
	}
}

func TestBoundCommand(t *testing.T) {
	d, pl := dataHome(t, "1bit-hrx-a/1bit")
	if err := os.Symlink(d+"/1bit-hrx-a/1bit", d+"/link"); err != nil {
		t.Fatal(err)
	}
	for want, commands := range map[string][]systemd.Command{
		d + "/1bit-hrx-a/1bit":         {{Path: d + "/1bit-hrx-a/1bit", Argv: []string{"1bit", "serve"}}},
		d + "/link":                    {{Path: d + "/link", Argv: []string{"1bit"}}},
		"--lib=" + d + "/1bit-hrx-a/l": {{Path: "/bin/true"}, {Path: "/bin/x", Argv: []string{"x", "--lib=" + d + "/1bit-hrx-a/l"}}},
		"--m=" + d + "/1bit-hrx-$ID/m": {{Path: "/bin/x", Argv: []string{"x", d + "/1bit-models/m.gguf", "--m=" + d + "/1bit-hrx-$ID/m"}}},
		"":                             {{Path: "/usr/bin/env", Argv: []string{"env", "${ONEBIT_LLAMA_SERVER}", "-m", d + "/1bit-models/m.gguf", "--cache=" + d + "/1bit-my-cache/x"}}},
	} {
		if got, bound := boundCommand(&systemd.Unit{ExecStart: commands}, pl); got != want || bound != (want != "") {
			t.Errorf("%v: %q %v", commands, got, bound)
		}
	}
}

func TestLoadedEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("B=file\nC=file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	u := &systemd.Unit{
		Environment:      []string{"A=1", "B=unit", "D=x", "E=keep"},
		EnvironmentFiles: []systemd.EnvironmentFile{{Path: file}, {Path: file + ".missing", Optional: true}},
		UnsetEnvironment: []string{"D", "E=other", "C=file"},
	}
	want := map[string]string{"A": "1", "B": "file", "E": "keep"}
	if diff := cmp.Diff(want, loadedEnvironment(u)); diff != "" {
		t.Error(diff)
	}
}

// A unit with very many variables is read in one go; with a question for each this takes minutes.
func TestBindingOfMany(t *testing.T) {
	d, pl := dataHome(t, "1bit-hrx-a/bin/s")
	text := "[Service]\nEnvironment=S=" + d + "/1bit-hrx-a/bin/s\n"
	var b strings.Builder
	for i := range 60000 {
		fmt.Fprintf(&b, "Environment=V%d=x\n", i)
	}
	if got := bindingOf(settingsOf(t, "u", text+b.String()), pl); len(got) != 1 {
		t.Errorf("%d variables", len(got))
	}
}
