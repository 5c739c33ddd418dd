package acceptance

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
)

// A program or a model that is replaced while a run goes on ends it: what was
// lived since is no evidence of what the run began with.
func TestReplacedMeanwhile(t *testing.T) {
	replace := func(path string) error {
		if err := os.WriteFile(path+".new", []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	for name, tt := range map[string]struct {
		do   func(path string) error
		want string // "": it may be
	}{
		"m.gguf":       {replace, "invalid(changed): model: "},
		"llama-server": {replace, "invalid(changed): server: "},
		"llama-bench":  {os.Remove, "invalid(changed): file of package fake-1: "},
		"m.gguf again": {func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, b, 0o600) // the same bytes, written anew
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, "works")
			bench, err := newSums().identify(t.Context(), "", filepath.Join(p.Path, "llama-bench"))
			if err != nil {
				t.Fatal(err)
			}
			p.Manifest.Files = []packager.File{{Path: "llama-bench", Type: "file", SHA256: strings.TrimPrefix(bench.Digest, "sha256:")}}
			plan := fakePlan(t, p, "", "primary: request\nattempts: 5\narms: [{name: a, lives: 2}]\nload: {requests: 48, prompt_tokens: [24], n_predict: [20]}\n")
			done := false
			v := soak(t, RunOptions{Plan: plan, Package: p, Progress: func(s Progress) {
				if s.Requests > 10 && !done {
					done = true
					if err := tt.do(filepath.Join(p.Path, strings.TrimSuffix(name, " again"))); err != nil {
						t.Error(err)
					}
				}
			}})
			path := filepath.Join(p.Path, name)
			switch {
			case tt.want == "" && v.Verdict != Pass:
				t.Errorf("%s: %s", v.Verdict, v.Reason)
			case tt.want != "" && (v.Verdict != Inconclusive || !strings.Contains(v.Reason, tt.want+path) || v.Arms.Clean != 0 || len(v.ArmStates) != 1):
				t.Errorf("%s: %s, %+v, want %s%s", v.Verdict, v.Reason, v.Arms, tt.want, path)
			}
		})
	}
}

// The digest of what serves is of the bytes that run, not of those that have
// been put in their place.
func TestMappedBytes(t *testing.T) {
	p := fakePackage(t, "works")
	path := filepath.Join(p.Path, "copier")
	cat, err := exec.LookPath("cat")
	if err == nil {
		var b []byte
		if b, err = os.ReadFile(cat); err == nil {
			err = os.WriteFile(path, b, 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := newSums().identify(t.Context(), "", path)
	if err != nil {
		t.Fatal(err)
	}
	p.Manifest.Files = []packager.File{{Path: "other", Type: "file", SHA256: "1"}}
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it works, so that all of it is mapped
		t.Fatal(err)
	}
	for _, when := range []string{"as started", "replaced since"} {
		m := mapped(t.Context(), "/proc", cmd.Process.Pid, p)
		if m.program.Name != "copier" || m.program.Digest != want.Digest || fmt.Sprint(m.added) != "[copier]" {
			t.Errorf("%s: %+v, want the digest %s", when, m, want.Digest)
		}
		if err := os.WriteFile(path+".new", []byte("another"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}
