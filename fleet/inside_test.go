package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// inside is what the tests inside the host share.
type inside struct {
	home string
	uid  int
	host *fleet.Host
	m    *systemd.Manager
	pkgs map[string]*store.Package // by id
}

func enter(t *testing.T) *inside {
	t.Helper()
	in := &inside{home: os.Getenv(insideVariable), uid: os.Getuid(), pkgs: map[string]*store.Package{}}
	state := filepath.Join(in.home, ".local/state/1bit")
	if in.uid == 0 {
		state = "/var/lib/1bit"
	}
	st := store.Open(filepath.Join(in.home, ".local/share"), state)
	in.host = in.newHost(st)
	var err error
	if in.m, err = in.host.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.m.Close)
	for id := range packages {
		if in.pkgs[id], err = st.Import(t.Context(), filepath.Join(st.Dir, "1bit-hrx-"+id)); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

func (in *inside) newHost(st *store.Store) *fleet.Host {
	scope, units := systemd.ScopeUser, filepath.Join(in.home, ".config/systemd/user")
	if in.uid == 0 {
		scope, units = systemd.ScopeSystem, "/etc/systemd/system"
	}
	return &fleet.Host{
		Scope: scope, Store: st, StateDir: st.StateDir, UnitDir: units,
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{Scope: scope, UID: in.uid})
		},
		Now: time.Now, User: "ai", LoadDeadline: 20 * time.Second,
	}
}

// service is one unit of a test, which ends with it.
type service struct {
	*testing.T
	*inside
	unit string
	port int
}

// start makes a unit that runs the front end on a package, starts it and waits until it answers. lines are added
// to its [Service] section. The stop has a short limit, since a server that gets two signals at once (of systemd
// and of its front end) sometimes hangs.
func (in *inside) start(t *testing.T, unit, id string, lines ...string) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, inside: in, unit: unit + ".service", port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	home := "%h"
	if in.uid == 0 {
		home = in.home
	}
	s.write(s.unit, fmt.Sprintf(`[Service]
Environment=ONEBIT_LLAMA_SERVER=%[1]s/.local/share/1bit-hrx-%[2]s/hrx/llama/bin/llama-server
ExecStart=%[1]s/front-end serve -m %[1]s/model.gguf --port %[3]d --parallel 2 --threads 1
Restart=always
RestartSec=200ms
TimeoutStopSec=5s
%[4]s
`, home, id, s.port, strings.Join(lines, "\n")))
	t.Cleanup(func() {
		ctx := context.Background()
		_, err := in.m.Stop(ctx, s.unit)
		err = errors.Join(err, os.Remove(s.path(s.unit)))
		for _, name := range s.files() {
			err = errors.Join(err, os.Remove(s.path(s.unit+".d", name)))
		}
		_ = os.Remove(s.path(s.unit + ".d")) // a mount point stays
		if err := errors.Join(err, in.m.Reload(ctx), in.m.ResetFailed(ctx, s.unit)); err != nil {
			t.Errorf("end %s: %v", s.unit, err)
		}
	})
	s.reload()
	if result, err := in.m.Start(t.Context(), s.unit); err != nil || result != "done" {
		t.Fatalf("start %s: %s, %v", s.unit, result, err)
	}
	s.await("hrx-"+id, fleet.HealthOK)
	return s
}

func (s *service) path(names ...string) string {
	return filepath.Join(append([]string{s.host.UnitDir}, names...)...)
}

// write writes a file below the unit folder.
func (s *service) write(name, text string) {
	s.Helper()
	path := s.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		s.Fatal(err)
	}
}

func (s *service) remove(name string) {
	s.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		s.Fatal(err)
	}
}

func (s *service) reload() {
	s.Helper()
	if err := s.m.Reload(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// files lists the drop-in folder.
func (s *service) files() []string {
	entries, err := os.ReadDir(s.path(s.unit + ".d"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (s *service) wantFiles(want ...string) {
	s.Helper()
	if got := s.files(); !slices.Equal(got, want) {
		s.Errorf("drop-in folder holds %v, want %v", got, want)
	}
}

func (s *service) status() fleet.Service {
	s.Helper()
	all, err := s.host.Status(s.Context(), s.unit)
	if err != nil {
		s.Fatal(err)
	}
	return all[0]
}

// await waits until the service runs from a package and has the health.
func (s *service) await(pkg, health string) fleet.Service {
	s.Helper()
	var now fleet.Service
	if !soon(func() bool {
		now = s.status()
		return now.Live != nil && now.Live.Main != nil && now.Live.Main.Package == pkg && now.Health == health
	}) {
		s.Fatalf("it does not come to run %s, %s: %s", pkg, health, show(now))
	}
	return now
}

// soon waits for what comes in a moment, or in many where the machine is busy.
func soon(is func() bool) bool {
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (s *service) do(name string, out *fleet.Outcome, err error) *fleet.Outcome {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", name, err)
	}
	return out
}

func (s *service) switchTo(id string) *fleet.Outcome {
	s.Helper()
	out, err := s.host.Switch(s.Context(), s.unit, s.pkgs[id], fleet.SwitchOptions{})
	return s.do("switch to "+id, out, err)
}

func (s *service) restartOn(id string) *fleet.Outcome {
	s.Helper()
	out, err := s.host.Switch(s.Context(), s.unit, s.pkgs[id], fleet.SwitchOptions{Restart: true, Watch: 300 * time.Millisecond})
	return s.do("switch with restart to "+id, out, err)
}

func (s *service) rollback() *fleet.Outcome {
	s.Helper()
	out, err := s.host.Rollback(s.Context(), s.unit, fleet.RollbackOptions{})
	return s.do("rollback", out, err)
}

// want compares the facts of a state: armed, live main, live child, restart pending.
func (s *service) want(got fleet.Service, armed, main, child string, pending bool) {
	s.Helper()
	name := func(p *fleet.Process) string {
		if p == nil {
			return ""
		}
		return strings.TrimPrefix(p.Package, "hrx-")
	}
	isArmed, isMain, isChild := "", "", ""
	if got.Armed != nil {
		isArmed = strings.TrimPrefix(got.Armed.Package, "hrx-")
	}
	if got.Live != nil {
		isMain, isChild = name(got.Live.Main), name(got.Live.Child)
	}
	if isArmed != armed || isMain != main || isChild != child || got.RestartPending != pending {
		s.Errorf("armed %s, main %s, child %s, pending %v; want %s, %s, %s, %v\n%s",
			isArmed, isMain, isChild, got.RestartPending, armed, main, child, pending, show(got))
	}
}

// chain checks that every record begins where the one before ended, and returns the acts.
func (s *service) chain() []string {
	s.Helper()
	records, err := s.host.History(s.Context(), s.unit)
	if err != nil {
		s.Fatal(err)
	}
	var acts []string
	for i, r := range records {
		if i > 0 && r.From != records[i-1].To {
			s.Errorf("record %d begins at %s, the one before ended at %s", i, r.From, records[i-1].To)
		}
		acts = append(acts, strings.TrimSpace(fmt.Sprintf("%s %s>%s %s", r.Act, strings.TrimPrefix(r.From, "hrx-"), strings.TrimPrefix(r.To, "hrx-"), r.Result)))
	}
	return acts
}

func (s *service) kill(pid int) {
	s.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
}

// fails runs an act that must fail in a certain way and change nothing.
func (s *service) fails(name string, want error, texts []string, act func() (*fleet.Outcome, error)) {
	s.Helper()
	files, before := s.snapshot(), s.chain()
	_, err := act()
	if !errors.Is(err, want) {
		s.Errorf("%s: %v, want %v", name, err, want)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			s.Errorf("%s: %q does not name %q", name, err, text)
		}
	}
	if now := s.snapshot(); now != files {
		s.Errorf("%s changed the files: %s, before %s", name, now, files)
	}
	if now := s.chain(); !slices.Equal(now, before) {
		s.Errorf("%s is in the history: %v", name, now)
	}
}

// snapshot is the drop-in folder with its bytes.
func (s *service) snapshot() string {
	var b strings.Builder
	for _, name := range s.files() {
		info, err := os.Lstat(s.path(s.unit+".d", name))
		if err == nil && !info.Mode().IsRegular() {
			fmt.Fprintf(&b, "== %s\n%v", name, info.Mode())
			continue
		}
		data, err := os.ReadFile(s.path(s.unit+".d", name))
		if err != nil {
			s.Fatal(err)
		}
		fmt.Fprintf(&b, "== %s\n%s", name, data)
	}
	return b.String()
}
