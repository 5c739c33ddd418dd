package incident_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/internal/testhost"
)

// TestDeathByMemory has a service killed by the kernel's OOM killer, for which it takes a kernel of its own.
func TestDeathByMemory(t *testing.T) {
	testhost.InMachine(t, 1<<30, func(t *testing.T, m testhost.Machine) {
		home := t.TempDir()
		furnishThinly(t, home, realengine.Require(t))
		s := newStage(t, home)
		s.watch()
		one := s.start("memory", "", "model.gguf", true, "", "OOMPolicy=stop")
		pid := one.main()
		if out, err := exec.Command("systemctl", "set-property", "--runtime", one.unit, "MemoryMax=4M", "MemorySwapMax=0").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		one.pressure(pid)
		r := one.only()
		if e := r.Ending; e == nil || e.Result != "oom-kill" || e.Signal != "SIGKILL" || !strings.Contains(e.Cause, "OOM killer") {
			t.Errorf("it ended as %+v", e)
		}
		if r.Evidence.State.MemoryMax == nil || *r.Evidence.State.MemoryMax != 4<<20 {
			t.Errorf("its limit is told as %v", r.Evidence.State.MemoryMax)
		}
		one.look(r, "OOM killer", "oom-kill")
	})
}

// furnishThinly is furnish where a copy of the engine would take long: the package's server is the engine's own.
func furnishThinly(t *testing.T, home string, tree *realengine.Tree) {
	t.Helper()
	program := filepath.Join(home, ".local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server")
	model, err := os.ReadFile(tree.Model(realengine.Plain))
	err = errors.Join(err, os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(filepath.Join(home, "model.gguf"), model, 0o644),
		os.WriteFile(program, []byte("#!/bin/sh\nexec "+tree.Program("llama-server")+" \"$@\"\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
}

// pressure asks until the server that has been running is gone.
func (s *service) pressure(pid int) {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if err := syscall.Kill(pid, 0); err != nil {
			return
		}
		body, _ := json.Marshal(map[string]any{"prompt": strings.Repeat("once upon a time ", 60), "n_predict": 64})
		if answer, err := http.Post(s.url+"/completion", "application/json", bytes.NewReader(body)); err == nil {
			answer.Body.Close()
		}
	}
	s.Fatalf("%s lives on", s.unit)
}
