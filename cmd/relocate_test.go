package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

const relocateRecipe = `flavour: hrx
include: [hrx/llama/bin]
fix_runpath: true
entry_points:
  llama-server: hrx/llama/bin/llama-server
  llama-bench: hrx/llama/bin/llama-bench
  llama-perplexity: hrx/llama/bin/llama-perplexity
  test-backend-ops: hrx/llama/bin/test-backend-ops
components:
  engine: {commit: 7871c71d}
`

// The real llama.cpp, built against libraries that only the build tree has,
// runs from any path and without launchers once fix_runpath made a package of
// it. It needs the C library of its distribution, so all of it happens in a
// root folder that has that and nothing else: the build, the installation and
// the server. Where the C library is older it does not start: the manifest
// says which one it takes, and verify on such a host names it.
func TestRealEngineRunsFromAnyPath(t *testing.T) {
	tools, tree := requireTools(t), realengine.Require(t)
	root := filepath.Join(t.TempDir(), "root")
	if err := tree.Root(root, "patchelf", tools.program); err != nil {
		lacking(t, err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := realengine.RunIn(root, nil, "/usr/bin/1bit", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("1bit %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
		}
		t.Logf("$ 1bit %s\n%s%s", strings.Join(args, " "), stderr.String(), out)
		return string(out)
	}
	if out, err := realengine.RunIn(root, nil, "/usr/bin/1bit", "--help").CombinedOutput(); err != nil {
		lacking(t, fmt.Errorf("run in a root folder: %w\n%s", err, out))
	}
	if err := tree.BuildTree(filepath.Join(root, "build/engine"), "/build/engine"); err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(tree.Model(realengine.Plain))
	if err != nil {
		t.Fatal(err)
	}
	writeTree(t, map[string]string{filepath.Join(root, "build/recipe.yaml"): relocateRecipe, filepath.Join(root, "model.gguf"): string(model)})
	archive := strings.TrimSpace(run("pkg", "build", "--recipe", "/build/recipe.yaml", "--tree", "/build/engine", "--out", "/dist", "--version", "v2026.44"))
	m, err := packager.ReadManifest(t.Context(), filepath.Join(root, archive), packager.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Machine == "" || m.Glibc == "" || len(m.HostLibraries) != 0 {
		t.Errorf("machine %q, glibc %q, host libraries %v", m.Machine, m.Glibc, m.HostLibraries)
	}
	t.Logf("it runs from any path where glibc is %s or newer, and not where it is older", m.Glibc)

	// Nothing of the build is left.
	if err := os.RemoveAll(filepath.Join(root, "build")); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"/first", "/another place/1"} {
		run("--data-home", home, "--state-home", "/state", "pkg", "install", archive)
		run("--data-home", home, "--state-home", "/state", "pkg", "verify")
		wantOnlyOrigin(t, filepath.Join(root, home, m.DirName()), m)
		wantCompletion(t, root, filepath.Join(home, m.DirName(), "hrx/llama/bin/llama-server"))
	}

	// On this machine verify knows whether the C library is new enough.
	here := t.TempDir()
	mustRun(t, tools.program, "--data-home", here, "--state-home", here+"/state", "pkg", "install", filepath.Join(root, archive))
	server := exec.Command(filepath.Join(here, m.DirName(), "hrx/llama/bin/llama-server"), "--version")
	server.Env = []string{}
	said, startErr := server.CombinedOutput()
	out, err := exec.Command(tools.program, "--data-home", here, "--state-home", here+"/state", "pkg", "verify").CombinedOutput()
	t.Logf("on this machine llama-server --version says: %.300s… (%v), and verify: %s", said, startErr, out)
	if (startErr == nil) != (err == nil) || startErr != nil && !strings.Contains(string(out), m.Glibc) {
		t.Errorf("verify says %q (%v), llama-server --version %q (%v)", out, err, said, startErr)
	}
}

// lacking skips a test for which this machine lacks something; in CI it fails.
func lacking(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("ONEBIT_CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// wantOnlyOrigin looks at every RUNPATH.
func wantOnlyOrigin(t *testing.T, dir string, m *packager.Manifest) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	objects, err := linkage.Inspect(t.Context(), root, m)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, o := range objects {
		for _, entry := range append(o.Rpath, o.Runpath...) {
			seen++
			if entry != "$ORIGIN" {
				t.Errorf("%s looks for libraries in %s", o.Path, entry)
			}
		}
	}
	if seen == 0 {
		t.Error("no file has a RUNPATH")
	}
}

// wantCompletion starts a server in a root folder and has it complete a text.
func wantCompletion(t *testing.T, root, server string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()
	var log bytes.Buffer
	cmd := realengine.RunIn(root, nil, server, "-m", "/model.gguf", "--host", "127.0.0.1", "--port", port, "--ctx-size", "512", "--parallel", "1", "--threads", "1")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("log of the server:\n%s", log.String())
		}
	}()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(time.Minute); ; {
		response, err := client.Get("http://127.0.0.1:" + port + "/health")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %v", server, cmd.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not get ready", server)
		}
	}
	response, err := client.Post("http://127.0.0.1:"+port+"/completion", "application/json", strings.NewReader(`{"prompt":"hello","n_predict":4}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Content == "" {
		t.Fatalf("%s answers %.200q", server, body)
	}
	t.Logf("%s completes \"hello\" with %q", server, answer.Content)
}
