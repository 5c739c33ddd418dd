package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

func TestScan(t *testing.T) {
	home := t.TempDir()
	pkg := filepath.Join(home, ".local/share/1bit-hrx-a")
	for path, text := range map[string]string{
		pkg + "/bin/x": "", home + "/names.env": "X=" + pkg + "\n", home + "/plain.env": "X=/usr/bin\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(pkg, filepath.Join(home, "current")); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"[Service]\nExecStart=/usr/bin/sleep 1\nEnvironment=A=1 B='two words' C=%i\n": false,
		"Environment=X=%h/.local/share/1bit-hrx-a/x":                                  true,
		`Environment=X=/opt/"1b"it-hrx`:                                               true,
		`Environment=X=/opt/\x31bit-hrx`:                                              true,
		`Environment="X=\\ \q"`:                                                       false,
		"ExecStart=-/opt/llama-server --port 1":                                       true,
		"Environment=LD_LIBRARY_PATH=/usr/lib:" + home + "/current/bin":               true,
		"ExecStart=%h/current/not-there":                                              true,
		"ExecStart=/usr/bin/x %t/bus":                                                 true,
		"EnvironmentFile=-" + home + "/names.env":                                     true,
		"EnvironmentFile = %h/*.env":                                                  true,
		"EnvironmentFile=" + home + "/plain.env":                                      false,
		"EnvironmentFile=-/not/there":                                                 false,
		"EnvironmentFile=/etc/%i.env":                                                 true,
		"Description=dollar 50% off":                                                  false,
		"ExecStart=%h/engines/%i/1run":                                                true,
		"EnvironmentFile=%h/.config/llm/%N.env":                                       true,
		"EnvironmentFile=\\\n" + home + "/names.env":                                  true,
		"ExecStart=%h/100%%/x":                                                        false,
	} {
		path := filepath.Join(t.TempDir(), "u.service")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := newScan([]string{home}).file(path); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if newScan(nil).file(filepath.Join(home, "none")) {
		t.Error("a file that is not there may concern us")
	}
}

func TestEngineCommand(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"/usr/bin/llama-server", "--port", "1"}, "/usr/bin/llama-server"},
		{[]string{"/bin/sh", "-c", "exec '/x/llama-server' --port 1"}, "/x/llama-server"},
		{[]string{"/usr/bin/env", "A=1", "llama-bench"}, "llama-bench"},
		{[]string{"/home/x/bin/1bit", "--scope", "user", "serve"}, "/home/x/bin/1bit"},
		{[]string{"/home/x/bin/1bit", "pkg", "status"}, ""},
		{[]string{"/usr/bin/pgrep", "llama-server"}, ""},
		{[]string{"/usr/bin/tail", "-F", "/var/log/llama-server"}, ""},
		{[]string{"/usr/bin/podman", "run", "ghcr.io/x/llama-server"}, ""},
		{[]string{"/usr/bin/nice", "-n", "5", "/x/llama-server"}, "/x/llama-server"},
		{[]string{"/usr/bin/tail", "-f", "/var/log/llama-server.log"}, ""},
		{[]string{"/z/zinc/hip/bin/zinc"}, "/z/zinc/hip/bin/zinc"},
	} {
		got, _ := engineCommand([]systemd.Command{{Path: tt.argv[0], Argv: tt.argv}})
		if got != tt.want {
			t.Errorf("%q is %q, want %q", tt.argv, got, tt.want)
		}
	}
	for program, want := range map[string]string{
		"/build/1/hrx/llama/bin/llama-server": "/build/1", "/b/zinc/hip/bin/zinc": "/b", "/usr/bin/llama-server": "", "/hrx/llama/bin/x": "",
		"llama-server": "",
	} {
		if got, _ := engineTree(program); got != want {
			t.Errorf("%s belongs to %q, want %q", program, got, want)
		}
	}
	name, ok := engineProcess(procInfo{exe: "/lib/ld.so", argv: []string{"/lib/ld.so", "/x/llama-server (deleted)"}})
	if !ok || name != "/x/llama-server" {
		t.Errorf("through the loader it is %q %v", name, ok)
	}
	if _, ok := engineProcess(procInfo{exe: "/usr/bin/tail", argv: []string{"tail", "-F", "/var/log/llama-server"}}); ok {
		t.Error("tail is an engine")
	}
	if _, ok := engineProcess(procInfo{exe: "/usr/bin/sleep", argv: []string{"sleep", "1"}}); ok {
		t.Error("sleep is an engine")
	}
}
