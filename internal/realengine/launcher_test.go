package realengine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frontEndAlone writes the front end without a tree behind it.
func frontEndAlone(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "1bit")
	if err := writeFile(path, frontEnd, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFrontEndArguments(t *testing.T) {
	server := script(t, `printf '<%s>' "$@"`)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-m", "a b.gguf", "--device", "hrx", "--port", "1"}, "<-m><a b.gguf><--port><1>"},
		{[]string{"--device=hrx", "-m", "x", "--device"}, "<-m><x>"},
		{[]string{"--parallel", "4", "-m", "*"}, "<--parallel><4><-m><*><-kvu>"},
		{[]string{"--parallel", "4", "--no-kv-unified"}, "<--parallel><4><--no-kv-unified>"},
		{[]string{"-np", "4", "-kvu"}, "<-np><4><-kvu>"},
	} {
		s := start(t, frontEndAlone(t), []string{"ONEBIT_LLAMA_SERVER=" + server}, test.args...)
		if err := s.wait(); err != nil {
			t.Errorf("serve %q: %v", test.args, err)
		}
		if got := s.log.String(); got != test.want {
			t.Errorf("serve %q: server was given %s, want %s", test.args, got, test.want)
		}
	}
}

func TestFrontEndExitStatus(t *testing.T) {
	for _, test := range []struct {
		server string
		want   int
	}{{script(t, "exit 0"), 0}, {script(t, "exit 3"), 3}, {script(t, "exit 1"), 1}, {"/nowhere/llama-server", 127}} {
		s := start(t, frontEndAlone(t), []string{"ONEBIT_LLAMA_SERVER=" + test.server})
		_ = s.wait()
		if got := s.cmd.ProcessState.ExitCode(); got != test.want {
			t.Errorf("server %s: exit status %d, want %d", test.server, got, test.want)
		}
	}
}

func TestFrontEndUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"frobnicate"}} {
		out, err := exec.Command(frontEndAlone(t), args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "usage: 1bit") {
			t.Errorf("1bit %v: %v, %q; want exit status 2 and usage", args, err, out)
		}
	}
}

// A child that a signal killed comes back from what the front end itself was started with.
func TestFrontEndStartsKilledChildAgain(t *testing.T) {
	tree := Require(t)
	s := serve(t, tree.FrontEnd(), []string{"ONEBIT_LLAMA_SERVER=" + tree.Program("llama-server")}, "-m", tree.Model(Plain))
	before := children(t, s.cmd.Process.Pid)
	if len(before) != 1 {
		t.Fatalf("children %v, want one", before)
	}
	if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "another child", func() bool {
		now := children(t, s.cmd.Process.Pid)
		return len(now) == 1 && now[0] != before[0]
	})
	s.awaitHealth(t)
	if a := complete(t, s.base, "hello"); a.nulls() != 0 {
		t.Errorf("%d null log-probabilities", a.nulls())
	}
	if !strings.Contains(s.log.String(), "was killed by signal 9") {
		t.Error("the front end does not say that its child was killed")
	}
}

func TestFrontEndPassesSignalsOn(t *testing.T) {
	tree := Require(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := serve(t, tree.FrontEnd(), nil, "-m", tree.Model(Plain))
		child := children(t, s.cmd.Process.Pid)[0]
		if err := s.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := s.wait(); err != nil {
			t.Errorf("%v: an idle server ended with %v, want no error", signal, err)
		}
		if err := syscall.Kill(child, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%v: the server is still there", signal)
		}
	}
}

// A child that dies of the signal that was passed on is not started again: the front end dies of it too.
func TestFrontEndDiesWithItsChild(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	s := start(t, frontEndAlone(t), []string{"ONEBIT_LLAMA_SERVER=" + script(t, ": >"+ready+"; exec sleep 600")})
	await(t, "the child", func() bool { _, err := os.Stat(ready); return err == nil })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.wait()
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("the front end ended with %v, want SIGTERM", s.cmd.ProcessState)
	}
}

// The program launcher takes the best backend that tree and processor have.
func TestProgramLauncherChoosesBackend(t *testing.T) {
	baseline := "flags\t\t: fpu sse4_2 avx"
	avx2 := baseline + " f16c avx2 bmi2 fma"
	avx512 := avx2 + " avx512f avx512cd avx512vl avx512dq avx512bw"
	all := []string{"x64", "sse42", "sandybridge", "ivybridge", "haswell", "skylakex", "icelake", "zen4"}
	for _, test := range []struct {
		cpu      string
		backends []string
		want     string
	}{
		{"flags\t\t: fpu sse2", all, "x64"},
		{baseline, all, "sandybridge"},
		{avx2, all, "haswell"},
		{avx2 + " fma4 avx_vnni", all, "haswell"},
		{avx512, all, "skylakex"},
		{avx512, []string{"x64", "haswell"}, "haswell"},
		{avx512 + " avx512vbmi avx512_vnni", all, "icelake"},
		{avx512 + " avx512vbmi avx512_vnni avx512_bf16", all, "zen4"},
		{"Features\t: fp asimd", []string{"armv8.0_1", "armv8.2_1"}, "armv8.0_1"},
		{"", all, "x64"},
		{"", nil, ""},
	} {
		llama := filepath.Join(t.TempDir(), "hrx", "llama")
		for _, dir := range []string{"bin", "lib/backends", runtimeDir} {
			if err := os.MkdirAll(filepath.Join(llama, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cpuinfo := filepath.Join(t.TempDir(), "cpuinfo")
		text := strings.ReplaceAll(launcherScript("loader", ""), "/proc/cpuinfo", cpuinfo)
		files := map[string]string{
			filepath.Join(llama, "bin/program"):        text,
			filepath.Join(llama, runtimeDir, "loader"): "#!/bin/sh\nprintf '%s\\n' \"$GGML_BACKEND_PATH\" \"$@\"\n",
			cpuinfo: "processor\t: 0\n" + test.cpu + "\nbugs\t\t: avx512f\n",
		}
		for _, name := range test.backends {
			files[filepath.Join(llama, "lib/backends/libggml-cpu-"+name+".so")] = ""
		}
		for path, text := range files {
			if err := writeFile(path, text, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		// Through a link, from elsewhere, with an argument that has spaces.
		link := filepath.Join(t.TempDir(), "other name")
		if err := os.Symlink(filepath.Join(llama, "bin/program"), link); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(link, "a b")
		cmd.Dir = t.TempDir()
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		backend := ""
		if test.want != "" {
			backend = filepath.Join(llama, "lib/backends/libggml-cpu-"+test.want+".so")
		}
		want := strings.Join([]string{backend, "--library-path", filepath.Join(llama, runtimeDir) + ":" + filepath.Join(llama, "lib"),
			filepath.Join(llama, "libexec/program"), "a b", ""}, "\n")
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("processor %q (-want +got):\n%s", test.cpu, diff)
		}
	}
}
