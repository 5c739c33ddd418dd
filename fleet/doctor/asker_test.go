package doctor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/fleet/doctor"
	"github.com/1bit-systems/pkg/internal/testhost"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// insideVariable makes the test binary an answerer: it is run inside the host, as the user or as root, and answers a
// question a line. So the doctor runs where a user would run it, and the test that plants the problems stays outside.
const insideVariable = "ONEBIT_DOCTOR_INSIDE"

// guardWord makes it the guard of a claim.
const guardWord = "claim-guard"

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		if err := answer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == guardWord {
		scope := func(string) (engine.Cage, bool) { return nil, false }
		if err := claim.Guard(os.Stdin, os.Args[2:], scope, time.Now); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// question is what is asked: of the doctor, or that something be done first.
type question struct {
	Do   string // doctor, reload, restart UNIT, reset-failed UNIT, install ARCHIVE, import FOLDER, adopt UNIT, hold UNIT REASON, switch UNIT PACKAGE, remove PACKAGE
	Args []string

	// What the doctor is told otherwise than it would be on the clean host.
	Root       string
	RuntimeDir string
	User       string
	Now        time.Time
	Policy     doctor.Policy
	Claim      string
	FloorGiB   float64
}

type reply struct {
	Result *doctor.Result
	Error  string
}

// answer answers questions until there are no more.
func answer(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return err
		}
		var r reply
		var err error
		if r.Result, err = q.answer(context.Background()); err != nil {
			r.Error = err.Error()
		}
		if err := json.NewEncoder(out).Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (q question) answer(ctx context.Context) (*doctor.Result, error) {
	own, system := hosts(q.User)
	h := own
	if os.Getuid() == 0 {
		h = system
	}
	switch q.Do {
	case "doctor":
		opts := q.options()
		opts.Hosts = []*fleet.Host{own, system}
		if h == system { // root sees those of the user too
			opts.Hosts = []*fleet.Host{system, own}
		}
		opts.Hosts[1].ReadOnly = true
		return doctor.Run(ctx, opts)
	case "reload", "restart", "reset-failed":
		return nil, q.manage(ctx, h)
	case "install":
		_, _, err := h.Store.Install(ctx, q.Args[0], nil)
		return nil, err
	case "import":
		_, err := h.Store.Import(ctx, q.Args[0])
		return nil, err
	case "adopt":
		_, err := h.Adopt(ctx, q.Args[0], false)
		return nil, err
	case "hold":
		_, err := h.Hold(ctx, q.Args[0], q.Args[1], time.Time{})
		return nil, err
	case "switch":
		p, err := h.Store.Find(ctx, q.Args[1])
		if err != nil {
			return nil, err
		}
		_, err = h.Switch(ctx, q.Args[0], p, fleet.SwitchOptions{})
		return nil, err
	case "remove":
		p, err := h.Store.Find(ctx, q.Args[0])
		if err != nil {
			return nil, err
		}
		return nil, h.Store.Remove(ctx, p, func(context.Context, *store.Package) ([]string, error) { return nil, nil })
	}
	return nil, fmt.Errorf("nobody knows how to do %q", q.Do)
}

// manage does what systemctl would, without a process more.
func (q question) manage(ctx context.Context, h *fleet.Host) error {
	m, err := h.Connect(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	switch q.Do {
	case "restart":
		result, err := m.Restart(ctx, q.Args[0])
		if err == nil && result != "done" {
			err = fmt.Errorf("restart %s: %s", q.Args[0], result)
		}
		return err
	case "reset-failed":
		return m.ResetFailed(ctx, q.Args[0])
	}
	return m.Reload(ctx)
}

func (q question) options() doctor.Options {
	now := q.Now
	if now.IsZero() {
		now = time.Now()
	}
	return doctor.Options{
		Root: q.Root, UID: os.Getuid(), User: q.User,
		RuntimeDir: q.RuntimeDir, Now: now, Policy: q.Policy,
		Claim: claim.Lock{Path: q.Claim}, ClaimFloorGiB: q.FloorGiB,
	}
}

// hosts are the user's services and the machine's.
func hosts(name string) (own, system *fleet.Host) {
	home := os.Getenv(insideVariable)
	uid, owner := os.Getuid(), ""
	if uid == 0 {
		info, err := os.Stat(home)
		if err != nil {
			return nil, nil
		}
		uid, owner = int(info.Sys().(*syscall.Stat_t).Uid), filepath.Base(home)
	}
	machine := store.Open("/opt/1bit", "/var/lib/1bit")
	machine.Shared = true
	mine := store.Open(filepath.Join(home, ".local/share"), filepath.Join(home, ".local/state/1bit"))
	mine.Also = []*store.Store{machine}
	own = &fleet.Host{
		Scope: systemd.ScopeUser, Store: mine, StateDir: mine.StateDir, UnitDir: filepath.Join(home, ".config/systemd/user"), Owner: owner,
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: uid})
		},
		Now: time.Now, User: name, LoadDeadline: 20 * time.Second,
	}
	system = &fleet.Host{
		Scope: systemd.ScopeSystem, Store: machine, StateDir: machine.StateDir, UnitDir: "/etc/systemd/system",
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{Scope: systemd.ScopeSystem})
		},
		Now: time.Now, User: name, LoadDeadline: 20 * time.Second, Elsewhere: []*store.Store{mine},
	}
	return own, system
}

// asker asks the answerer inside a host.
type asker struct {
	t       testing.TB
	in      *json.Encoder
	out     *json.Decoder
	stderr  bytes.Buffer
	account string
	policy  string
}

// newAsker starts an answerer as a user of the host. program is this binary, inside.
func newAsker(t testing.TB, host *testhost.Host, account, program string) *asker {
	t.Helper()
	a := &asker{t: t, account: account, policy: filepath.Join(host.Home, ".config/1bit/config.yaml")}
	if account == "root" {
		a.policy = "/etc/1bit/config.yaml"
	}
	cmd := host.Command(context.Background(), account, program)
	cmd.Env = append(cmd.Env, insideVariable+"="+host.Home)
	cmd.Stderr = &a.stderr
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
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the answerer of %s: %v: %s", account, err, a.stderr.String())
		}
	})
	a.in, a.out = json.NewEncoder(in), json.NewDecoder(out)
	return a
}

// ask has the question answered.
func (a *asker) ask(t testing.TB, q question) *doctor.Result {
	t.Helper()
	if q.User == "" {
		q.User = a.account
	}
	if q.Policy == (doctor.Policy{}) {
		q.Policy = doctor.Policy{File: a.policy, Restart: "confirm"}
	}
	var r reply
	if err := a.in.Encode(q); err != nil {
		t.Fatalf("%v: %s", err, a.stderr.String())
	}
	if err := a.out.Decode(&r); err != nil {
		t.Fatalf("%v: %s", err, a.stderr.String())
	}
	if r.Error != "" {
		t.Fatalf("%s %q: %s", q.Do, q.Args, r.Error)
	}
	return r.Result
}
