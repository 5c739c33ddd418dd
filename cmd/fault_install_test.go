package cmd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/faultrun"
)

// installSite is one data home to install into.
type installSite struct {
	t             *testing.T
	program, home string
}

func newInstallSite(t *testing.T, program string) installSite {
	return installSite{t, program, t.TempDir()}
}

func (s installSite) args(args ...string) []string {
	return append([]string{"--scope", "user", "--data-home", filepath.Join(s.home, "data"), "--state-home", filepath.Join(s.home, "state")}, args...)
}

// packages are what list shows, name → state.
func (s installSite) packages() map[string]string {
	s.t.Helper()
	var doc struct {
		Packages []struct{ Name, State string }
	}
	out, err := exec.Command(s.program, s.args("-o", "json", "pkg", "list")...).Output()
	if err != nil {
		s.t.Fatalf("list: %v", err)
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		s.t.Fatal(err)
	}
	states := map[string]string{}
	for _, p := range doc.Packages {
		states[p.Name] = p.State
	}
	return states
}

func (s installSite) staged() []string {
	left, err := filepath.Glob(filepath.Join(s.home, "data", ".1bit-staging", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return left
}

func (s installSite) disturbed(faultrunPath string, fault []string, args ...string) faultrun.Result {
	s.t.Helper()
	out := filepath.Join(s.home, "calls.json")
	cmd := exec.Command(faultrunPath, append(append(fault, "-out", out, "--", s.program), s.args(args...)...)...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 125 {
		s.t.Fatalf("faultrun: %v\n%s", err, text)
	}
	return decodeResult(s.t, out)
}

// Every durable write of an install is synced, and every sync is needed.
func TestInstallIsDurable(t *testing.T) {
	tools := requireTools(t)
	archive := buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa")[0]
	site := newInstallSite(t, tools.program)
	r := site.disturbed(tools.faultrun, nil, "pkg", "install", archive)
	if r.Exit != 0 {
		t.Fatalf("install ended with %d", r.Exit)
	}
	wantEverySyncNeeded(t, r.Calls, []string{site.home}, filepath.Join(site.home, "data", ".1bit-staging"))
}

// A package of many files is synced with its file system, in one go, where that can be done. An error of that sync
// is the install's, and so is a death in it.
func TestInstallOfManyFiles(t *testing.T) {
	tools := requireTools(t)
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 300 {
		files[filepath.Join(dir, "tree/hrx/kernels", strconv.Itoa(i)+".co")] = strings.Repeat("kernel ", i)
	}
	writeTree(t, files)
	archive := buildPackages(t, tools.program, "", dir, "aaaaaaa")[0]
	site := newInstallSite(t, tools.program)
	r := site.disturbed(tools.faultrun, nil, "pkg", "install", archive)
	if r.Exit != 0 {
		t.Fatalf("install ended with %d", r.Exit)
	}
	wantEverySyncNeeded(t, r.Calls, []string{site.home}, filepath.Join(site.home, "data", ".1bit-staging"))
	for _, d := range disturbances {
		site := newInstallSite(t, tools.program)
		// How the files are synced hangs on how much others on this host have to write just then: in one go, or each.
		broken := site.disturbed(tools.faultrun, append([]string{"-match", "^(fsync|syncfs) .*/[.]1bit-staging/install-[^/]*/1bit-hrx-"}, d.args...), "pkg", "install", archive)
		if !broken.Fired || broken.Exit == 0 || len(site.packages()) != 0 {
			t.Errorf("%s in the sync (reached: %v): install ended with %d, list shows %v", d.name, broken.Fired, broken.Exit, site.packages())
		}
		mustRun(t, tools.program, site.args("pkg", "install", archive)...)
		mustRun(t, tools.program, site.args("pkg", "verify")...)
	}
}

// Whatever happens at whichever point of an install: list shows nothing or the whole package, and the next
// install puts all to rights.
func TestInstallDisturbedAtEveryPoint(t *testing.T) {
	tools := requireTools(t)
	archive := buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa")[0]
	for _, d := range disturbances {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			points := 0
			for at := 1; ; at++ {
				site := newInstallSite(t, tools.program)
				r := site.disturbed(tools.faultrun, append([]string{"-at", strconv.Itoa(at)}, d.args...), "pkg", "install", archive)
				if at > len(r.Calls) {
					if r.Exit != 0 {
						t.Errorf("an undisturbed install ended with %d", r.Exit)
					}
					break
				}
				points++
				where := strconv.Itoa(at) + " (" + r.Calls[at-1].String() + ")"
				state, listed := site.packages()["hrx-aaaaaaa"]
				if listed && state != "ok" {
					t.Errorf("disturbed at %s: list shows it as %s", where, state)
				}
				if r.Exit == 0 && !listed {
					t.Errorf("disturbed at %s: exit 0 and not installed", where)
				}
				if listed {
					mustRun(t, tools.program, site.args("pkg", "verify", "hrx-aaaaaaa")...)
				}
				if again := mustRun(t, tools.program, site.args("-o", "json", "pkg", "install", archive)...); !strings.Contains(again, `"state": "ok"`) {
					t.Errorf("disturbed at %s: the next install says %s", where, again)
				}
				if left := site.staged(); len(left) != 0 {
					t.Errorf("disturbed at %s: staging still holds %v", where, left)
				}
				mustRun(t, "chmod", "-R", "u+w", site.home)
				if err := os.RemoveAll(site.home); err != nil {
					t.Fatal(err)
				}
			}
			if points < 15 {
				t.Errorf("only %d points: the run was not seen whole", points)
			}
			t.Logf("%d points", points)
		})
	}
}
