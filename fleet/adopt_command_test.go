package fleet

import (
	"errors"
	"os"
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

// argvOf is what systemd makes of a command line: words, specifiers, then variables.
func argvOf(r *rewriter, line string, env map[string]string) (out [][]string) {
	commands, err := systemd.SplitCommands(line)
	if err != nil {
		return nil
	}
	for _, words := range commands {
		var argv []string
		for _, word := range words {
			text, _, ok := r.specs.Expand(r.unit, word.Text)
			switch {
			case !ok:
				argv = append(argv, "refused")
			case len(text) > 1 && text[0] == '$' && text[1] != '{' && text[1] != '$':
				argv = append(argv, strings.Fields(env[text[1:]])...)
			default:
				argv = append(argv, variables(text, env))
			}
		}
		out = append(out, argv)
	}
	return out
}

// variables is systemd's replace_env without braceless names.
func variables(text string, env map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '$' || i+1 == len(text):
			b.WriteByte(text[i])
		case text[i+1] == '$':
			b.WriteByte('$')
			i++
		case text[i+1] == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				b.WriteString(text[i:])
				return b.String()
			}
			b.WriteString(env[text[i+2:i+end]])
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

func TestRewriteCommand(t *testing.T) {
	for _, tt := range []struct {
		name, line, want string
		vars             string // NAME=path below the package
	}{
		{"no package", "-/bin/true  'a b' %h $$ ${X}", "-/bin/true  'a b' %h $$ ${X}", ""},
		{"the server", "%h/1bit-hrx-a/bin/llama-server  -m %h/m.gguf --port 8095", "/usr/bin/env ${ONEBIT_LLAMA_SERVER} -m %h/m.gguf --port 8095", "ONEBIT_LLAMA_SERVER=bin/llama-server"},
		{"prefixes, quotes", `"-+%h/1bit-hrx-a/bin/llama-server" "--x=a b" 'c'`, `-+/usr/bin/env ${ONEBIT_LLAMA_SERVER} "--x=a b" 'c'`, "ONEBIT_LLAMA_SERVER=bin/llama-server"},
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
		{"over a link", "%h/current/bin/llama-server", "/usr/bin/env ${ONEBIT_LLAMA_SERVER}", "ONEBIT_LLAMA_SERVER=current"},
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
			if got := strings.ReplaceAll(strings.Join(vars, " "), "current/bin/llama-server", "current"); got != tt.vars {
				t.Errorf("variables %s", got)
			}
			sameArguments(t, r, tt.line, got)
		})
	}
}

// sameArguments checks that both lines start the same, but for env.
func sameArguments(t *testing.T, r *rewriter, before, after string) {
	t.Helper()
	env := map[string]string{"X": "some thing", "PORT": "1"}
	was := argvOf(r, before, env)
	for _, a := range r.vars {
		env[a.Key] = a.Value
	}
	is := argvOf(r, after, env)
	for i := range is {
		if i >= len(was) || len(is[i]) == 0 || len(was[i]) == 0 {
			continue
		}
		prefix := is[i][0][:len(is[i][0])-len(strings.TrimLeft(is[i][0], prefixes))]
		if is[i][0] == prefix+envProgram && was[i][0] != is[i][0] && len(is[i]) > 1 {
			is[i] = append([]string{prefix + is[i][1]}, is[i][2:]...)
		}
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
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r\x00") || len(line) > 300 {
			t.Skip()
		}
		r, _ := rewriting(t)
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
