package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/systemd"
)

// rewriting makes a rewriter over two packages, and returns it with the folder that %h stands for.
func rewriting(t testing.TB) (*rewriter, string) {
	t.Helper()
	files := []string{"1bit", "bin/llama-server", "lib/x.so", "lib2/y.so", "lib/ld-linux-x86-64.so.2", "libexec/llama-server", "mm/proj one.gguf", "mm/proj.gguf"}
	var all []string
	for _, name := range files {
		all = append(all, "1bit-hrx-a/"+name, "1bit-hrx-b/"+name)
	}
	d, pl := dataHome(t, all...)
	if err := os.Symlink(d+"/1bit-hrx-a", d+"/current"); err != nil {
		t.Fatal(err)
	}
	return &rewriter{
		place: pl, unit: &systemd.Unit{ID: "llm@one.service"}, specs: systemd.Specifiers{'h': d},
		folders: []string{d + "/1bit-hrx-a", d + "/1bit-hrx-b"},
	}, d
}

// argvOf is what systemd makes of a command line, as the reader of units tells; nil where it starts nothing.
func argvOf(t testing.TB, r *rewriter, line string, env binding) (out [][]string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("[Service]\nType=oneshot\n")
	for _, a := range env {
		quoted, err := systemd.QuoteAssignment(a.Key, a.Value)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("Environment=" + quoted + "\n")
	}
	f, err := systemd.ParseFile("unit", []byte(text.String()+"ExecStart="+line+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := systemd.Effective([]*systemd.File{f}, systemd.ReadEnvironmentFiles, r.specs)
	for _, c := range s.Start() {
		argv, _ := s.Argv(c, map[string]string{})
		out = append(out, append([]string{c.Prefix, c.Path}, argv...))
	}
	return out
}

func TestRewriteCommand(t *testing.T) {
	for _, tt := range []struct {
		name, line, want string
		vars             string // NAME=path below the package
	}{
		{"no package", "-/bin/true  'a b' %h $$ ${X}", "-/bin/true  'a b' %h $$ ${X}", ""},
		{"the server", "%h/1bit-hrx-a/bin/llama-server  -m %h/m.gguf --port 8095", "/usr/bin/env ${ONEBIT_LLAMA_SERVER} -m %h/m.gguf --port 8095", "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"prefixes, quotes", `"-+%h/1bit-hrx-a/bin/llama-server" "--x=a b" 'c'`, `-+/usr/bin/env ${ONEBIT_LLAMA_SERVER} "--x=a b" 'c'`, "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"a model in a folder of that kind of name", "%h/1bit-hrx-a/bin/llama-server -m %h/1bit-models/m.gguf --cache=%h/1bit-my-cache/x",
			"/usr/bin/env ${ONEBIT_LLAMA_SERVER} -m %h/1bit-models/m.gguf --cache=%h/1bit-my-cache/x", "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"a server that an option names", "/opt/wrap --draft %h/1bit-hrx-a/bin/llama-server %h/1bit-hrx-a/bin/llama-server", "/opt/wrap --draft ${ONEBIT_ARG_DRAFT} ${ONEBIT_ARG_DRAFT}", "ONEBIT_ARG_DRAFT=bin/llama-server"},
		{"one that a shell hands over", "/bin/sh -c 'exec /opt/wrap --draft %h/1bit-hrx-a/bin/llama-server'", `/bin/sh -c "exec /opt/wrap --draft ${ONEBIT_ARG_LLAMA_SERVER}"`, "ONEBIT_ARG_LLAMA_SERVER=bin/llama-server"},
		{"front end", "%h/1bit-hrx-a/1bit serve", "/usr/bin/env ${ONEBIT_PROGRAM} serve", "ONEBIT_PROGRAM=1bit"},
		{"options", `%h/1bit-hrx-a/bin/llama-server --mmproj %h/1bit-hrx-a/mm/proj.gguf "--lora=%h/1bit-hrx-a/mm/proj one.gguf"`,
			`/usr/bin/env ${ONEBIT_LLAMA_SERVER} --mmproj ${ONEBIT_ARG_MMPROJ} "--lora=${ONEBIT_ARG_LORA}"`,
			"ONEBIT_LLAMA_SERVER=bin/llama-server ONEBIT_ARG_MMPROJ=mm/proj.gguf ONEBIT_ARG_LORA=mm/proj one.gguf"},
		{"a loader", "/lib64/ld.so --library-path %h/1bit-hrx-a/lib:/x:%h/1bit-hrx-a/lib2 %h/1bit-hrx-a/libexec/llama-server --port 1",
			`/lib64/ld.so --library-path "${ONEBIT_ARG_LIBRARY_PATH}:/x:${ONEBIT_ARG_LIBRARY_PATH_2}" ${ONEBIT_LLAMA_SERVER} --port 1`,
			"ONEBIT_ARG_LIBRARY_PATH=lib ONEBIT_ARG_LIBRARY_PATH_2=lib2 ONEBIT_LLAMA_SERVER=libexec/llama-server"},
		{"the package's loader", "%h/1bit-hrx-a/lib/ld-linux-x86-64.so.2 %h/1bit-hrx-a/libexec/llama-server",
			"/usr/bin/env ${ONEBIT_PROGRAM} ${ONEBIT_LLAMA_SERVER}", "ONEBIT_PROGRAM=lib/ld-linux-x86-64.so.2 ONEBIT_LLAMA_SERVER=libexec/llama-server"},
		{"a shell", `/bin/sh -c 'cd /tmp; exec %h/1bit-hrx-a/bin/llama-server --port "$$PORT" 100%%'`,
			`/bin/sh -c "cd /tmp; exec ${ONEBIT_LLAMA_SERVER} --port \"$$PORT\" 100%%"`, "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"env", "/usr/bin/env LD_LIBRARY_PATH=%h/1bit-hrx-a/lib %h/1bit-hrx-a/bin/llama-server",
			`/usr/bin/env "LD_LIBRARY_PATH=${ONEBIT_ARG_LD_LIBRARY_PATH}" ${ONEBIT_LLAMA_SERVER}`, "ONEBIT_ARG_LD_LIBRARY_PATH=lib ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"another name for a shell", "@/bin/sh sh -c 'exec %h/1bit-hrx-a/bin/llama-server'", `@/bin/sh sh -c "exec ${ONEBIT_LLAMA_SERVER}"`, "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"two commands", `/bin/true \; ; %h/1bit-hrx-a/bin/llama-server a`, `/bin/true \; ; /usr/bin/env ${ONEBIT_LLAMA_SERVER} a`, "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"the same twice", "%h/1bit-hrx-a/bin/llama-server --self %h/1bit-hrx-a/bin/llama-server", "/usr/bin/env ${ONEBIT_LLAMA_SERVER} --self ${ONEBIT_LLAMA_SERVER}", "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"over a link", "%h/current/bin/llama-server", "/usr/bin/env ${ONEBIT_LLAMA_SERVER}", "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"a dollar before", "/bin/echo a$%h/1bit-hrx-a/lib", `/bin/echo "a$$${ONEBIT_ARG_LIB}"`, "ONEBIT_ARG_LIB=lib"},
		{"a name, no path", "/bin/x --alias 1bit-hrx-a", "/bin/x --alias 1bit-hrx-a", ""},
		{"a folder of that name elsewhere", "/bin/x /usr/1bit-hrx-a-not/y", "/bin/x /usr/1bit-hrx-a-not/y", ""},
		{"a glob", "/bin/sh -c 'cat %h/1bit-hrx-a/lib/*.so'", `/bin/sh -c "cat ${ONEBIT_ARG_LIB}*.so"`, "ONEBIT_ARG_LIB=lib/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, d := rewriting(t)
			got, changed, err := r.line(tt.line)
			if err != nil || got != tt.want || changed != (tt.vars != "") {
				t.Fatalf("%v %v\n%s\n%s", changed, err, got, tt.want)
			}
			var vars []string
			for _, a := range r.vars {
				vars = append(vars, a.Key+"="+strings.TrimPrefix(strings.TrimPrefix(a.Value, d+"/1bit-hrx-a/"), d+"/"))
			}
			if got := strings.Join(vars, " "); got != tt.vars {
				t.Errorf("variables %s", got)
			}
			sameArguments(t, r, tt.line, got)
		})
	}
}

// sameArguments checks that both lines start the same, but for env.
func sameArguments(t *testing.T, r *rewriter, before, after string) {
	t.Helper()
	for _, a := range r.vars {
		if _, err := systemd.QuoteAssignment(a.Key, a.Value); err != nil {
			return // adopt refuses it
		}
	}
	env := binding{{"X", "some thing"}, {"PORT", "1"}}
	was, is := argvOf(t, r, before, env), argvOf(t, r, after, append(env, r.vars...))
	if was == nil {
		return // a unit that does not start is not adopted
	}
	for i, argv := range is {
		if i < len(was) && argv[1] == envProgram && was[i][1] != envProgram && len(argv) > 3 {
			is[i] = append([]string{argv[0], filepath.Clean(argv[3])}, argv[3:]...)
		}
	}
	for i := range was { // the same program, by its own folder
		was[i] = r.place.pinnedWords(was[i])
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("%s starts otherwise than %s (-before +after):\n%s", after, before, diff)
	}
}

func TestRewriteCommandRefuses(t *testing.T) {
	for want, line := range map[string]string{
		`"@"`:                         "@%h/1bit-hrx-a/bin/llama-server llama",
		`":"`:                         ":%h/1bit-hrx-a/bin/llama-server",
		`":" of :/bin/sh`:             ":/bin/sh %h/1bit-hrx-a/bin/llama-server",
		`"|"`:                         "|%h/1bit-hrx-a/bin/llama-server",
		"(deleted)":                   "%h/1bit-hrx-a/bin/llama-server (deleted) --port 1",
		"not there":                   "%h/1bit-hrx-a/bin/gone --port 1",
		"$HOME":                       "/bin/sh -c 'exec $HOME/x/1bit-hrx-a/bin/llama-server'",
		"~":                           "/bin/sh -c 'exec ~/1bit-hrx-b/bin/llama-server'",
		"a package in a form":         "/bin/sh -c 'exec %h/1bit-hrx-${ID}/bin/llama-server'",
		"not certain":                 "/bin/x %h/1bit-hrx-a/lib/x.so%v",
		"how systemd reads":           `/bin/x "%h/1bit-hrx-a`,
		"1bit-hrx-a in a form":        "/bin/x ./1bit-hrx-a/lib",
		"mounted elsewhere in a form": "/bin/x /mnt%h/1bit-hrx-a/lib # mounted elsewhere",
	} {
		r, _ := rewriting(t)
		want, _, _ = strings.Cut(want, " in a form")
		want = strings.TrimSuffix(want, "mounted elsewhere")
		if got, _, err := r.line(line); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %q", line, got, err, want)
		}
	}
}

// A variable of the unit that has the value already is used; one that has another stays what it is.
func TestRewriteCommandVariables(t *testing.T) {
	r, d := rewriting(t)
	server := d + "/1bit-hrx-a/bin/llama-server"
	r.taken, r.reuse = []string{"SERVER", serverVariable}, binding{{"SERVER", server}}
	got, _, err := r.line("%h/1bit-hrx-a/bin/llama-server %h/1bit-hrx-a/libexec/llama-server")
	if want := "/usr/bin/env ${SERVER} ${ONEBIT_ARG_LLAMA_SERVER}"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if want := (binding{{"SERVER", server}, {"ONEBIT_ARG_LLAMA_SERVER", d + "/1bit-hrx-a/libexec/llama-server"}}); !slices.Equal(r.vars, want) {
		t.Errorf("variables %v, want %v", r.vars, want)
	}
}

func FuzzRewriteCommand(f *testing.F) {
	for _, seed := range []string{
		"P/bin/llama-server -m x", "-P/1bit serve --x=P/lib", `/bin/sh -c 'exec P/bin/llama-server "$$A" $A ${X}'`, `/x P/lib:P/lib2 \; ; P/1bit`,
		`"P/mm/proj one.gguf"`, "/x $P/lib $$P/lib a$P/lib", `/x \x20P/lib%%P/lib`, "/x 'P/lib'\"P/lib\"P", "@P/1bit a", ":/x P", "/x ${X}P/lib${X}", "/x P/lib{P}",
	} {
		f.Add(seed)
	}
	base, _ := rewriting(f)
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r\x00") || len(line) > 300 {
			return
		}
		r := &rewriter{place: base.place, unit: base.unit, specs: base.specs, folders: base.folders}
		line = strings.ReplaceAll(line, "P", "%h/1bit-hrx-a")
		got, changed, err := r.line(line)
		if err != nil || !changed {
			if err == nil && got != line {
				t.Errorf("%q is not changed and reads %q", line, got)
			}
			return
		}
		sameArguments(t, r, line, got)
	})
}
