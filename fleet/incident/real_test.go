package incident_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/internal/testhost"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// insideVariable tells the test binary that it runs inside the test host, and holds the user's home.
const insideVariable = "ONEBIT_INCIDENT_INSIDE"

// patience is for a machine that does much else.
const patience = 2 * time.Minute

// TestReal kills a real llama-server under the user manager of a host with a real systemd: this same binary, once more.
func TestReal(t *testing.T) {
	if home := os.Getenv(insideVariable); home != "" {
		deaths(t, home)
		return
	}
	host, tree := testhost.Require(t), realengine.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	furnish(t, host.Outside(host.Home), tree)
	if _, err := host.Run(ctx, "root", "chown", "-R", host.User+":", host.Home); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := host.Bring(self)
	if err != nil {
		t.Fatal(err)
	}
	cmd := host.Command(ctx, host.User, program, "-test.run=^TestReal$", "-test.v", "-test.timeout=4m")
	cmd.Env = append(cmd.Env, insideVariable+"="+host.Home, "ONEBIT_CI="+os.Getenv("ONEBIT_CI"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestReal") {
		t.Fatalf("the test inside: %v\n%s", err, out)
	}
	t.Logf("inside:\n%s", out)
}

// furnish puts a package and a model into a home.
func furnish(t *testing.T, home string, tree *realengine.Tree) {
	t.Helper()
	data := filepath.Join(home, ".local/share")
	model, err := os.ReadFile(tree.Model(realengine.Plain))
	err = errors.Join(err, os.MkdirAll(data, 0o755), tree.Variant(realengine.Plain, filepath.Join(data, "1bit-hrx-aaa0001")),
		os.WriteFile(filepath.Join(home, "model.gguf"), model, 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

// stage is a manager with services of ours, and a watch of it.
type stage struct {
	*testing.T
	home  string
	host  *fleet.Host
	m     *systemd.Manager
	mutex sync.Mutex
	made  []*incident.Report
	news  chan struct{}
}

func newStage(t *testing.T, home string) *stage {
	t.Helper()
	scope, units, state := systemd.ScopeUser, filepath.Join(home, ".config/systemd/user"), filepath.Join(home, ".local/state/1bit")
	if os.Getuid() == 0 {
		scope, units = systemd.ScopeSystem, "/etc/systemd/system"
	}
	packages := store.Open(filepath.Join(home, ".local/share"), state)
	s := &stage{T: t, home: home, news: make(chan struct{}, 1), host: &fleet.Host{
		Scope: scope, Store: packages, StateDir: state, UnitDir: units, Now: time.Now, User: "ai",
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{Scope: scope, UID: os.Getuid()})
		},
	}}
	if err := os.MkdirAll(units, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := packages.Import(t.Context(), filepath.Join(packages.Dir, "1bit-hrx-aaa0001")); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.m, err = s.host.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.m.Close)
	return s
}

// watch watches until the test has ended.
func (s *stage) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- incident.Watch(ctx, incident.WatchOptions{
			Sources: func() []incident.Source {
				return []incident.Source{{
					Running: s.host.Running, Name: string(s.host.Scope), Query: systemd.JournalQuery{Scope: s.host.Scope},
					Units: func(ctx context.Context) ([]string, error) {
						services, err := s.host.Inspect(ctx)
						var units []string
						for _, one := range services {
							units = append(units, one.Unit)
						}
						return units, err
					},
					Gather: func(ctx context.Context, unit string, since, until time.Time, lost []incident.Lost) (*incident.Evidence, error) {
						return incident.Gather(ctx, incident.GatherOptions{
							Host: s.host, Unit: unit, Scope: s.host.Scope, Since: since, Until: until, Lost: lost, Packages: s.host.Store.List,
							Journal: systemd.ReadJournal, Incidents: s.incidents(), Now: time.Now(), Program: "test",
						})
					},
				}}
			},
			Follow: systemd.FollowJournal, Incidents: s.incidents(), State: filepath.Join(s.home, "watch.json"), Now: time.Now,
			Settle: 3 * time.Second, Look: 200 * time.Millisecond,
			Written: func(_ string, _ int, r *incident.Report) {
				s.mutex.Lock()
				defer s.mutex.Unlock()
				s.made = append(s.made, r)
				select {
				case s.news <- struct{}{}:
				default:
				}
			},
		})
	}()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

func (s *stage) incidents() string { return filepath.Join(s.home, "incidents") }

// reports waits until a unit has one, and gives all it has.
func (s *stage) reports(unit string) []*incident.Report {
	s.Helper()
	deadline := time.After(patience)
	for {
		var of []*incident.Report
		s.mutex.Lock()
		for _, r := range s.made {
			if r.Unit == unit {
				of = append(of, r)
			}
		}
		s.mutex.Unlock()
		if len(of) > 0 {
			return of
		}
		select {
		case <-s.news:
		case <-deadline:
			s.Fatalf("no report of %s", unit)
		}
	}
}

// service is a unit that runs the engine.
type service struct {
	*stage
	unit, url string
}

// start makes and starts a unit, whose server is started by the front end where there is one, and waits until it answers if
// it should.
func (s *stage) start(name, front, model string, answers bool, unitLines, serviceLines string) *service {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	one := &service{s, name + ".service", fmt.Sprintf("http://127.0.0.1:%d", port)}
	text := fmt.Sprintf(`[Unit]
%[1]s
[Service]
Environment=ONEBIT_LLAMA_SERVER=%[2]s/.local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server
Environment=HF_TOKEN=hf_swordfish0123456789
ExecStart=/usr/bin/env %[6]s ${ONEBIT_LLAMA_SERVER} -m %[2]s/%[3]s --port %[4]d --parallel 4 -kvu -c 2048 --threads 1
Restart=always
RestartSec=300ms
TimeoutStopSec=10s
%[5]s
`, unitLines, s.home, model, port, serviceLines, front)
	if err := os.WriteFile(filepath.Join(s.host.UnitDir, one.unit), []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	if err := s.m.Reload(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _, _ = s.m.Stop(context.Background(), one.unit) })
	if result, err := s.m.Start(s.Context(), one.unit); err != nil || answers && result != "done" {
		s.Fatalf("start %s: %s, %v", one.unit, result, err)
	}
	if answers {
		one.ask("Once upon a time")
		one.ask("The quick brown fox")
	}
	return one
}

// ask has a prompt answered, as soon as the server can.
func (s *service) ask(prompt string) {
	s.Helper()
	body, _ := json.Marshal(map[string]any{"prompt": prompt, "n_predict": 12})
	var last any
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		answer, err := http.Post(s.url+"/completion", "application/json", bytes.NewReader(body))
		if last = err; err == nil {
			answer.Body.Close()
			if last = answer.Status; answer.StatusCode == http.StatusOK {
				return
			}
		}
	}
	s.Fatalf("%s does not answer: %v", s.unit, last)
}

// main is the main process.
func (s *service) main() int {
	s.Helper()
	u, err := s.m.Unit(s.Context(), s.unit)
	if err != nil || u.MainPID == 0 {
		s.Fatalf("%s: %v: no main process", s.unit, err)
	}
	return u.MainPID
}

// server is the one of a front end, as soon as the watch knows it.
func (s *service) server() int {
	s.Helper()
	var state struct {
		Sources map[string]struct {
			Services map[string]struct{ Servers []fleet.Started }
		}
	}
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		raw, err := os.ReadFile(filepath.Join(s.home, "watch.json"))
		if err == nil && json.Unmarshal(raw, &state) == nil {
			if all := state.Sources[string(s.host.Scope)].Services[s.unit].Servers; len(all) == 1 {
				return all[0].PID
			}
		}
	}
	s.Fatalf("the watch does not know the server of %s", s.unit)
	return 0
}

// deaths kills services in every way and looks at what the watch writes.
func deaths(t *testing.T, home string) {
	s := newStage(t, home)
	s.watch()
	const frontEnd = `/bin/bash -c 'while :; do "$$@"; done' front`
	owned, front := s.start("owned", frontEnd, "model.gguf", true, "", ""), s.start("front", frontEnd, "model.gguf", true, "", "")
	segv, abrt := s.start("segv", "", "model.gguf", true, "", ""), s.start("abrt", "", "model.gguf", true, "", "")
	owned.server()
	lost := front.server()

	// The owner restarts and stops: no incident.
	for _, verb := range []string{"restart", "stop"} {
		if out, err := exec.Command("systemctl", "--user", verb, owned.unit).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", verb, err, out)
		}
	}
	for _, one := range []struct {
		*service
		signal syscall.Signal
	}{{segv, syscall.SIGSEGV}, {abrt, syscall.SIGABRT}} {
		if err := syscall.Kill(one.main(), one.signal); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(lost, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	limit := s.start("limit", "", "missing.gguf", false, "StartLimitIntervalSec=60\nStartLimitBurst=3", "")

	for _, one := range []struct {
		*service
		signal string
	}{{segv, "SIGSEGV"}, {abrt, "SIGABRT"}} {
		r := one.only()
		e := r.Ending
		if e == nil || e.Signal != one.signal || e.UptimeS == nil || *e.UptimeS <= 0 {
			t.Errorf("%s ended as %+v", one.unit, e)
			continue
		}
		if e.Result != "signal" && e.Result != "core-dump" {
			t.Errorf("%s: result %s", one.unit, e.Result)
		}
		if r.Restart == nil || r.Restart.Counter == nil || *r.Restart.Counter != 1 || r.Restart.StartedAt == nil || r.Restart.GaveUp != "" {
			t.Errorf("%s: restart %+v", one.unit, r.Restart)
		}
		if r.Server == nil || r.Server.Slots != 4 || !r.Server.KVUnified || r.Server.Tasks != 2 {
			t.Errorf("%s: server %+v", one.unit, r.Server)
		}
		if r.Shape.Parallel != 4 || r.Shape.Context != 2048 || r.Shape.Model != home+"/model.gguf" || len(r.Shape.PromptTokens) == 0 {
			t.Errorf("%s: shape %+v", one.unit, r.Shape)
		}
		if _, _, err := incident.Plan(r, ""); err != nil {
			t.Errorf("%s: no plan: %v", one.unit, err)
		}
		one.look(r, one.signal)
	}
	r := limit.only()
	if e := r.Ending; e == nil || e.Status == nil || *e.Status != 1 {
		t.Errorf("%s ended as %+v", limit.unit, e)
	}
	if r.Restart == nil || !strings.Contains(r.Restart.GaveUp, "limit") {
		t.Errorf("%s: restart %+v", limit.unit, r.Restart)
	}
	limit.look(r, "missing.gguf")
	r = front.only()
	if e := r.Ending; e == nil || !e.Child || e.PID != lost || r.Server == nil || r.Server.Tasks != 2 {
		t.Errorf("%s ended as %+v: server %+v", front.unit, e, r.Server)
	}
	front.look(r, "the watch saw it go")
	if len(s.made) != 4 {
		for _, r := range s.made {
			t.Errorf("there is a report of %s: %s", r.Unit, r.Summary)
		}
	}
}

// only is the one report of a unit.
func (s *service) only() *incident.Report {
	s.Helper()
	all := s.reports(s.unit)
	if len(all) != 1 {
		s.Errorf("%d reports of %s", len(all), s.unit)
	}
	return all[0]
}

// look checks what every report of these services has, and that the folder makes it again.
func (s *service) look(r *incident.Report, words ...string) {
	s.Helper()
	text := r.Markdown()
	for _, word := range append(words, "hrx-aaa0001", s.unit) {
		if !strings.Contains(text, word) {
			s.Errorf("the report of %s does not say %q:\n%s", s.unit, word, text)
		}
	}
	folders, err := filepath.Glob(filepath.Join(s.incidents(), "*-"+s.unit))
	if err != nil || len(folders) != 1 {
		s.Fatalf("folders of %s: %v, %v", s.unit, folders, err)
	}
	e, err := incident.Read(folders[0])
	if err != nil {
		s.Fatal(err)
	}
	again := incident.Analyse(e)
	if again.Event != r.Event || again.Markdown() != text {
		s.Errorf("the folder of %s makes another report:\n%s", s.unit, again.Markdown())
	}
	err = filepath.WalkDir(folders[0], func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("swordfish")) {
			s.Errorf("%s has a secret", path)
		}
		return err
	})
	if err != nil {
		s.Error(err)
	}
}
