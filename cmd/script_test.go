package cmd_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/1bit-systems/pkg/cmd"
	"github.com/1bit-systems/pkg/internal/fakeengine"
)

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"1bit":              func() { os.Exit(cmd.Main()) },
		"fake-llama-server": func() { os.Exit(fakeengine.Main(os.Args[1:], os.Getenv, os.Stderr, os.Exit)) },
	})
}

// Every script has a home of its own and talks to no systemd but where it says so.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("ONEBIT_PKG_SCOPE", "user")
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(e.WorkDir, "no-runtime-dir"))
			e.Setenv("SOURCE_DATE_EPOCH", "1790000000")
			return os.Mkdir(home, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "elf": elf},
	})
}

// status N PROGRAM ARGS… runs a program that must end with exit status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program args…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		code, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = code.ExitCode()
	}
	if want := args[0]; want != strconv.Itoa(got) {
		ts.Fatalf("exit status %d, want %s", got, want)
	}
}
