package cmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/1bit-systems/pkg/internal/faultrun"
)

// tools are the program as it ships and the one that disturbs it, built once for all tests of this package.
type tools struct{ program, faultrun, fakeengine string }

var builtTools = sync.OnceValues(func() (tools, error) {
	dir, err := os.MkdirTemp("", "1bit-tools-")
	if err != nil {
		return tools{}, err
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+"/", "./1bit",
		"../internal/faultrun/cmd/faultrun", "../internal/fakeengine/cmd/fakeengine")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return tools{}, errors.New(string(out))
	}
	return tools{filepath.Join(dir, "1bit"), filepath.Join(dir, "faultrun"), filepath.Join(dir, "fakeengine")}, os.Chmod(dir, 0o755)
})

func requireTools(t *testing.T) tools {
	t.Helper()
	built, err := builtTools()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func mustRun(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func writeTree(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// buildPackages makes one small archive for each id and returns their paths. server is the file that becomes
// llama-server; "" is a script that does nothing.
func buildPackages(t *testing.T, program, server, dir string, ids ...string) []string {
	t.Helper()
	text := []byte("#!/bin/sh\n[ \"$1\" = --version ] || exec sleep infinity\n")
	if server != "" {
		read, err := os.ReadFile(server)
		if err != nil {
			t.Fatal(err)
		}
		text = read
	}
	writeTree(t, map[string]string{
		filepath.Join(dir, "recipe.yaml"):                        "flavour: hrx\ninclude: [1bit, hrx]\nentry_points: {llama-server: hrx/llama/bin/llama-server}\ncomponents: {engine: {commit: 7871c71d}}\n",
		filepath.Join(dir, "tree", "1bit"):                       "#!/bin/sh\n",
		filepath.Join(dir, "tree", "hrx/llama/bin/llama-server"): string(text),
		filepath.Join(dir, "tree", "hrx/llama/lib/libllama.so"):  strings.Repeat("library ", 40_000),
	})
	var archives []string
	for _, id := range ids {
		out := mustRun(t, program, "--scope", "user", "pkg", "build", "--recipe", filepath.Join(dir, "recipe.yaml"),
			"--tree", filepath.Join(dir, "tree"), "--out", filepath.Join(dir, "dist"), "--id", id)
		lines := strings.Split(strings.TrimSpace(out), "\n") // notes, then the path
		archives = append(archives, strings.TrimSpace(lines[len(lines)-1]))
	}
	return archives
}

// A disturbance is a way to go wrong at one point, as arguments of faultrun.
type disturbance struct {
	name string
	args []string
}

var disturbances = []disturbance{
	{"SIGKILL", []string{"-kill"}},
	{"ENOSPC", []string{"-errno", "ENOSPC", "-sticky"}},
	{"EIO", []string{"-errno", "EIO"}},
}

func decodeResult(t *testing.T, path string) faultrun.Result {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r faultrun.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// wantEverySyncNeeded fails when a run's changes could be lost, or when one of its syncs could go missing
// without CheckDurable noticing.
func wantEverySyncNeeded(t *testing.T, calls []faultrun.Call, roots []string, scratch ...string) {
	t.Helper()
	for _, problem := range faultrun.CheckDurable(calls, roots, scratch...) {
		t.Error(problem)
	}
	syncs := 0
	for {
		rest, dropped, ok := faultrun.WithoutSync(calls, syncs)
		if !ok {
			break
		}
		syncs++
		if slices.Contains(scratch, filepath.Dir(dropped.Path)) {
			continue // the folder that a package leaves may be lost with the staging
		}
		if len(faultrun.CheckDurable(rest, roots, scratch...)) == 0 {
			t.Errorf("nobody would notice the loss of %s", dropped)
		}
	}
	if syncs == 0 {
		t.Error("the run synced nothing")
	}
	t.Logf("%d points, %d syncs, each of them needed", len(calls), syncs)
}

// testRun is what -run of this test binary says.
func testRun() string {
	if f := flag.Lookup("test.run"); f != nil {
		return f.Value.String()
	}
	return ""
}
