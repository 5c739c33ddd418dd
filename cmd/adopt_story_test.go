package cmd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/internal/testhost"
)

// storyPatience bounds the wait for an engine that loads beside all other tests.
const storyPatience = 2 * time.Minute

const storyRecipe = `flavour: hrx
include: [1bit, hrx]
fix_runpath: true
entry_points: {1bit: 1bit, llama-server: hrx/llama/bin/llama-server}
components: {engine: {commit: 7871c71d}}
`

// storyMachine is a user's machine as years have left it: a real engine in a directory that an old script made, and
// units written by hand.
type storyMachine struct {
	t       *testing.T
	host    *testhost.Host
	program string
	dir     string // of all of it, inside
	old     string // the directory without a manifest
	broken  string // the candidate starts no more while this file is there
	unit    string
	port    int
	owned   map[string]string // the owner's files, as he wrote them
	before  string            // the directory, before anything was done
	bytes   string            // the same, with every byte
}

// The story of a real machine, in two variants: what was made by hand is taken in and over, the candidate is
// installed, armed and started, crashes, and is rolled back; in the end every trace of ours is gone. After every step
// the service answers, and no byte of the owner's has changed.
func TestStoryOfARealMachine(t *testing.T) {
	m := newStoryMachine(t)
	engine := "-m %[1]s/model.gguf --host 127.0.0.1 --port %[2]d --parallel 2 --threads 1 --ctx-size 2048"
	service := "Restart=always\nRestartSec=200ms\nTimeoutStopSec=5s\n"
	at := strings.Replace(m.old, m.host.Home, "%h", 1)
	t.Run("variables in hrx.conf", func(t *testing.T) {
		m.tell(t, "1bit-story.service", map[string]string{
			"": "[Unit]\nDescription=written in a hurry\nStartLimitIntervalSec=0\n\n[Service]\nExecStart=%[1]s/front-end serve " + engine + "\n" + service,
			"hrx.conf": "\n  # where the engine is; ask me before you touch it\n[Service]\n\tEnvironment = HSA_USERPTR_FOR_PAGED_MEM=0\n" +
				"Environment=\"ONEBIT_LLAMA_SERVER=" + at + "/hrx/llama/bin/llama-server\"  \\\n   ; no, not this one\n   'NOTE=two  words'\n" +
				"#Environment=ONEBIT_LLAMA_SERVER=/build/llama-server\n\nEnvironment=LD_LIBRARY_PATH=" + at + "/hrx/llama/lib:/usr/local/lib",
		}, []string{"Environment=\"ONEBIT_LLAMA_SERVER=", "Environment=LD_LIBRARY_PATH="}, []string{"LD_LIBRARY_PATH", "ONEBIT_LLAMA_SERVER"})
	})
	t.Run("ExecStart= starts the engine", func(t *testing.T) {
		m.tell(t, "1bit-direct.service", map[string]string{
			"":              "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\n" + service,
			"override.conf": "[Service]\nExecStart=\nExecStart=-" + at + "/hrx/llama/bin/llama-server " + strings.Replace(engine, "--parallel", "\\\n  # two are enough\n  --parallel", 1) + "\n\n# end",
		}, []string{"ExecStart=-" + at + "/hrx/llama/bin/llama-server"}, []string{"ONEBIT_LLAMA_SERVER"})
	})
}

func newStoryMachine(t *testing.T) *storyMachine {
	t.Helper()
	host, tree, tools := testhost.Require(t), realengine.Require(t), requireTools(t)
	m := &storyMachine{t: t, host: host, dir: filepath.Join(host.Home, "story")}
	m.old = filepath.Join(m.dir, "data/1bit-hrx-3092596")
	m.broken = filepath.Join("/run/user", strconv.Itoa(host.UID), "candidate-is-broken")
	m.user("mkdir", "-p", filepath.Join(m.dir, "data"), filepath.Join(host.Home, ".config/systemd/user"))
	outside := host.Outside(m.dir)
	for from, to := range map[string]string{tools.program: "1bit", tree.FrontEnd(): "front-end", tree.Model(realengine.Plain): "model.gguf"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(outside, to), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m.program = filepath.Join(m.dir, "1bit")
	if err := tree.Variant(realengine.Plain, host.Outside(m.old)); err != nil {
		t.Fatal(err)
	}
	// The candidate: the same engine, with a way to break it later.
	build := t.TempDir()
	if err := tree.Copy(filepath.Join(build, "tree")); err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(build, "tree/hrx/llama/bin/llama-server")
	script, err := os.ReadFile(launcher)
	if err != nil {
		t.Fatal(err)
	}
	trap := "#!/bin/sh\nif [ -e \"${XDG_RUNTIME_DIR:-/nowhere}/candidate-is-broken\" ]; then echo 'GPU fault' >&2; exit 1; fi\n"
	writeTree(t, map[string]string{
		launcher:                            strings.Replace(string(script), "#!/bin/sh\n", trap, 1),
		filepath.Join(build, "recipe.yaml"): storyRecipe,
		host.Outside(filepath.Join(host.Home, ".config/1bit/config.yaml")): "restart: free\n",
		filepath.Join(outside, "config.yaml"):                              fmt.Sprintf("scope: user\nrestart: free\ndata_home: %[1]s/data\nstate_home: %[1]s/state\nload_deadline: 2m\n", m.dir),
	})
	mustRun(t, tools.program, "--scope", "user", "pkg", "build", "--recipe", filepath.Join(build, "recipe.yaml"), "--tree", filepath.Join(build, "tree"),
		"--out", filepath.Join(build, "dist"), "--version", "v2026.44", "--id", "7871c71", "--level", "fast")
	archives, err := filepath.Glob(filepath.Join(build, "dist/*.tar.zst"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	mustRun(t, "cp", archives[0], filepath.Join(outside, "candidate.tar.zst"))
	mustRun(t, "chown", "-R", strconv.Itoa(host.UID), outside)
	m.before, m.bytes = m.tree(false), m.tree(true)
	return m
}

func (m *storyMachine) user(name string, args ...string) string {
	m.t.Helper()
	out, err := m.host.Run(context.Background(), m.host.User, name, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *storyMachine) onebit(args ...string) string {
	m.t.Helper()
	return m.user(m.program, append([]string{"--config", filepath.Join(m.dir, "config.yaml")}, args...)...)
}

// refused runs a command that must end with a status and say something.
func (m *storyMachine) refused(status int, text string, args ...string) {
	m.t.Helper()
	cmd := m.host.Command(context.Background(), m.host.User, m.program, append([]string{"--config", filepath.Join(m.dir, "config.yaml")}, args...)...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(string(out), text) {
		m.t.Errorf("1bit %v ended with %d, want %d and %q:\n%s", args, got, status, text, out)
	}
}

// tree is a digest of all that the old directory holds: names, modes, sizes and times, and all bytes if wanted.
func (m *storyMachine) tree(bytes bool) string {
	m.t.Helper()
	sum := sha256.New()
	root := m.host.Outside(m.old)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %v %d %v\n", path, info.Mode(), info.Size(), info.ModTime())
		if bytes && info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum.Write(data)
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// tell tells the story of one unit. files are the owner's, "" the unit and the others drop-ins; taken are the
// beginnings of the lines that adopt takes over, moved the variables that move afterwards.
func (m *storyMachine) tell(t *testing.T, unit string, files map[string]string, taken, moved []string) {
	m.t, m.unit, m.owned = t, unit, map[string]string{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	units := filepath.Join(m.host.Home, ".config/systemd/user")
	for name, text := range files {
		path := filepath.Join(units, unit)
		if name != "" {
			path = filepath.Join(units, unit+".d", name)
		}
		text = strings.NewReplacer("%[1]s", m.dir, "%[2]d", strconv.Itoa(m.port)).Replace(text)
		m.owned[path] = text
		writeTree(t, map[string]string{m.host.Outside(path): text})
		mustRun(t, "chown", "-R", strconv.Itoa(m.host.UID), m.host.Outside(filepath.Dir(path)))
	}
	t.Cleanup(func() {
		m.t = t
		m.user("rm", "-f", m.broken)
		m.user("systemctl", "--user", "stop", unit)
		m.user("rm", "-r", filepath.Join(units, unit), filepath.Join(units, unit+".d"))
		m.user("systemctl", "--user", "daemon-reload")
		m.user("systemctl", "--user", "reset-failed")
	})
	m.user("systemctl", "--user", "daemon-reload")
	m.user("systemctl", "--user", "start", unit)
	m.serves("at the start", "hrx-3092596")

	if !strings.Contains(m.onebit("pkg", "list"), "3092596") { // the first of the two stories takes it in
		m.refused(4, "1bit pkg import "+m.old, "pkg", "adopt", unit)
	}
	m.onebit("pkg", "import", m.old)
	m.serves("import", "hrx-3092596")

	dry := m.onebit("pkg", "adopt", unit, "--dry-run")
	if _, err := os.Stat(m.host.Outside(filepath.Join(units, unit+".d", "zz-1bit.conf"))); err == nil {
		t.Error("a dry run of adopt wrote our drop-in")
	}
	var adopted struct {
		From, To, Diff string
		Changed        bool
		TakenOver      []struct {
			File, Text string
			Line       int
		} `json:"taken_over"`
	}
	if err := json.Unmarshal([]byte(m.onebit("-o", "json", "pkg", "adopt", unit)), &adopted); err != nil {
		t.Fatal(err)
	}
	for i, want := range taken {
		if i >= len(adopted.TakenOver) || !strings.HasPrefix(adopted.TakenOver[i].Text, want) {
			t.Errorf("adopt took over %+v, want lines that begin with %q", adopted.TakenOver, taken)
			break
		}
		if at := fmt.Sprintf("%s:%d", adopted.TakenOver[i].File, adopted.TakenOver[i].Line); !strings.Contains(dry, at) {
			t.Errorf("the dry run does not name %s:\n%s", at, dry)
		}
	}
	if len(adopted.TakenOver) != len(taken) || !adopted.Changed || adopted.From != "hrx-3092596" || adopted.To != adopted.From ||
		!strings.Contains(adopted.Diff, "\n+Environment=") || !strings.Contains(dry, "+[X-1bit]") {
		t.Errorf("adopt: %+v", adopted)
	}
	m.serves("adopt", "hrx-3092596")
	m.refused(0, "nothing to roll back", "pkg", "rollback", unit)
	m.refused(0, "already", "pkg", "adopt", unit)
	m.onebit("pkg", "restart", unit, "--watch", "0s") // it serves as adopted, too
	m.serves("restart", "hrx-3092596")

	m.onebit("pkg", "install", filepath.Join(m.dir, "candidate.tar.zst"))
	m.serves("install", "hrx-3092596")
	m.onebit("pkg", "switch", unit, "7871c71", "--restart", "--watch", "300ms")
	m.serves("switch", "hrx-7871c71")
	m.environment("7871c71", moved)
	m.refused(4, "1bit pkg rollback", "pkg", "unadopt", unit)

	// The candidate crashes, and cannot start again.
	m.user("touch", m.broken)
	m.user("sh", "-c", "kill -9 $(cat /sys/fs/cgroup$(systemctl --user show -P ControlGroup "+unit+")/cgroup.procs)")
	m.onebit("pkg", "rollback", unit, "--restart", "--watch", "300ms")
	m.serves("rollback", "hrx-3092596")
	m.environment("3092596", moved)
	m.user("rm", m.broken)
	if status := m.onebit("pkg", "status", unit); !strings.Contains(status, "hrx-7871c71 is blocked") || strings.Contains(status, "since then") {
		t.Errorf("status after the rollback:\n%s", status)
	}
	m.refused(4, "blocked", "pkg", "switch", unit, "7871c71")

	m.onebit("pkg", "unswitch", unit)
	m.serves("unswitch", "hrx-3092596")
	m.user("systemctl", "--user", "restart", unit)
	m.serves("the end", "hrx-3092596")
	if m.tree(true) != m.bytes {
		t.Errorf("in the end the bytes of %s have changed", m.old)
	}
	entries, err := os.ReadDir(m.host.Outside(filepath.Join(units, unit+".d")))
	if err != nil || len(entries) != len(files)-1 {
		t.Errorf("the drop-in folder holds %v, %v", entries, err)
	}
	if records := m.onebit("pkg", "history", unit); !strings.Contains(records, "adopt") || !strings.Contains(records, "unswitch") {
		t.Errorf("history:\n%s", records)
	}
}

// environment checks that all that moves lies in one package, as systemd has it loaded.
func (m *storyMachine) environment(id string, keys []string) {
	m.t.Helper()
	loaded := m.user("systemctl", "--user", "show", "-P", "Environment", m.unit)
	for _, key := range keys {
		if !strings.Contains(loaded, key+"="+filepath.Join(m.dir, "data/1bit-hrx-"+id)+"/") {
			m.t.Errorf("%s is not in %s: %s", key, id, loaded)
		}
	}
}

// serves waits until the service answers from a package, and checks that nothing of the owner's has changed.
func (m *storyMachine) serves(step, pkg string) {
	m.t.Helper()
	var doc struct {
		Services []struct {
			Health string
			Live   *struct{ Main, Child *struct{ Package string } }
		}
	}
	for began := time.Now(); ; {
		if err := json.Unmarshal([]byte(m.onebit("-o", "json", "pkg", "status", m.unit)), &doc); err != nil || len(doc.Services) != 1 {
			m.t.Fatalf("after %s: status: %v %+v", step, err, doc)
		}
		if doc.Services[0].Health == "ok" && doc.Services[0].Live != nil {
			break
		}
		if time.Since(began) > storyPatience {
			m.t.Fatalf("after %s it does not come to answer: %+v\n%s", step, doc, m.user("systemctl", "--user", "status", m.unit))
		}
	}
	live := doc.Services[0].Live
	runs := live.Main
	if live.Child != nil {
		runs = live.Child
	}
	if runs == nil || runs.Package != pkg {
		m.t.Errorf("after %s it runs %+v, want %s", step, runs, pkg)
	}
	for path, text := range m.owned {
		data, err := os.ReadFile(m.host.Outside(path))
		if err != nil || !bytes.Equal(data, []byte(text)) {
			m.t.Errorf("after %s, %s is not as its owner wrote it: %v\n%s", step, path, err, data)
		}
	}
	if m.tree(false) != m.before {
		m.t.Errorf("after %s the directory %s has changed", step, m.old)
	}
}
