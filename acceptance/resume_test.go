package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// A killable is a runner in a process of its own: this test binary, with a
// package and a plan in its folder.
type killable struct {
	dir      string // holds package.json and evidence
	evidence string
	pkg      *store.Package
}

func newKillable(t *testing.T, p *store.Package, plan *Plan) *killable {
	t.Helper()
	k := &killable{dir: t.TempDir(), pkg: p}
	k.evidence = filepath.Join(k.dir, "evidence")
	b, err := json.Marshal(struct {
		Package *store.Package
		Plan    string
	}{p, plan.path})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "run.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	return k
}

// runnerMain runs a soak as a killable says.
func runnerMain(dir string) int {
	var in struct {
		Package *store.Package
		Plan    string
	}
	raw, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	o := RunOptions{Package: in.Package, Evidence: filepath.Join(dir, "evidence"), Env: os.Environ()}
	if o.Plan, err = LoadPlan(in.Plan); err != nil {
		fmt.Println(err)
		return 1
	}
	if os.Getenv(beInside) != "" {
		if o.Bus, err = systemd.Connect(context.Background(), systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: os.Getuid()}); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if _, err := Run(context.Background(), o); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// start starts the runner.
func (k *killable) start(t *testing.T) *exec.Cmd {
	t.Helper()
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), beRunner+"="+k.dir)
	var said bytes.Buffer
	runner.Stdout = &said
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		runner.Process.Kill()
		if t.Failed() {
			t.Logf("the runner said: %s", said.String())
		}
	})
	return runner
}

// recorded counts the requests in the ledger.
func (k *killable) recorded() int {
	raw, _ := os.ReadFile(filepath.Join(k.evidence, LedgerName))
	return strings.Count(string(raw), `"kind":"request"`)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

// resume goes on with the run in this process.
func (k *killable) resume(t *testing.T, bus *systemd.Manager) (*Verdict, error) {
	t.Helper()
	return Resume(t.Context(), RunOptions{Evidence: k.evidence, Bus: bus, Find: k.find, Env: os.Environ()})
}

func (k *killable) find(_ context.Context, name string) (*store.Package, error) {
	if name != k.pkg.Name {
		return nil, fmt.Errorf("no package %s: %w", name, fs.ErrNotExist)
	}
	return k.pkg, nil
}

// kill -9 of the runner in the middle loses no record and leaves no process; the
// run goes on and its verdict is of the kind that it would have been.
func TestKilledRunnerIsResumed(t *testing.T) {
	tree := realengine.Require(t)
	p := installed(t, tree)
	plan := realPlan(t, tree.Model("plain"), "requests: 30, n_predict: [16], request_deadline: 60s",
		"arms: [{name: candidate, lives: 5}]\nneighbour: {args: [-t, '1', -p, '64', -n, '32', -r, '20']}\nattempts: 7\ngates: {all_slots_busy_share: 0.2}\n")
	k := newKillable(t, p, plan)
	runner := k.start(t)
	until(t, "requests of the second life", func() bool { return k.recorded() > 40 })
	if _, err := k.resume(t, nil); !errors.Is(err, ErrRunning) {
		t.Errorf("a run that goes on was resumed: %v", err)
	}
	runner.Process.Kill()
	runner.Wait()
	kept, err := os.ReadFile(filepath.Join(k.evidence, LedgerName))
	if err != nil {
		t.Fatal(err)
	}
	kept = kept[:bytes.LastIndexByte(kept, '\n')+1]
	until(t, "the end of what it started", func() bool { return len(running(p.Path)) == 0 })
	if v, err := JudgeDir(k.evidence); err != nil || v.Verdict != Inconclusive {
		t.Errorf("%+v, %v", v, err)
	}
	f, err := os.OpenFile(filepath.Join(k.evidence, LedgerName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"seq":999,"at":"torn`)
	f.Close()
	v, err := k.resume(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	noneLeft(t, p.Path)
	if v.Verdict != Pass || v.Arms.Clean != 5 || v.Arms.Invalid != 1 {
		t.Errorf("%s: %s, %+v", v.Verdict, v.Reason, v.Arms)
	}
	now, _ := os.ReadFile(filepath.Join(k.evidence, LedgerName))
	if !bytes.HasPrefix(now, kept) {
		t.Error("the ledger of before is not the beginning of that of now")
	}
	resumed := 0
	eachRecord(t, k.evidence, func(r *record) {
		if r.Kind == recordResume {
			resumed++
			if !strings.Contains(string(r.Data), "torn") {
				t.Errorf("the torn line is not told of: %s", r.Data)
			}
		}
	})
	if resumed != 1 {
		t.Errorf("%d records of a runner that goes on", resumed)
	}
	if _, err := k.resume(t, nil); !errors.Is(err, ErrLedger) {
		t.Errorf("a run that has ended was resumed: %v", err)
	}
}

// An interrupted run can go on too; what it tests must be what it was.
func TestInterruptedRunIsResumed(t *testing.T) {
	p := fakePackage(t, "works")
	plan := fakePlan(t, p, "", "attempts: 3\n")
	ctx, cancel := context.WithCancel(t.Context())
	k := newKillable(t, p, plan)
	v, err := Run(ctx, RunOptions{Plan: plan, Package: p, Evidence: k.evidence, Progress: func(s Progress) {
		if s.Requests > 4 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	noneLeft(t, p.Path)
	if v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, "invalid(harness): ") {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
	other := *p
	other.Digest = "sha256:" + strings.Repeat("2", 64)
	k.pkg = &other
	if _, err := k.resume(t, nil); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "fake-1") {
		t.Errorf("another package: %v", err)
	}
	k.pkg = p
	model := filepath.Join(p.Path, "m.gguf")
	if err := os.WriteFile(model, []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := k.resume(t, nil); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "m.gguf") {
		t.Errorf("another model: %v", err)
	}
	if err := os.WriteFile(model, []byte("model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v, err = k.resume(t, nil); err != nil {
		t.Fatal(err)
	}
	// The life that was cut off is the one that may be invalid.
	if v.Verdict != Pass || v.Arms.Invalid != 1 || v.Arms.Clean != 1 {
		t.Errorf("%s: %s, %+v", v.Verdict, v.Reason, v.Arms)
	}
}

// Watch follows a run by its ledger and ends with it.
func TestWatch(t *testing.T) {
	p := fakePackage(t, "works")
	k := newKillable(t, p, fakePlan(t, p, "", "load: {requests: 400, prompt_tokens: [24], n_predict: [20]}\n"))
	runner := k.start(t)
	var seen []Status
	if err := Watch(t.Context(), k.evidence, 20*time.Millisecond, func(s Status) { seen = append(seen, s) }); err != nil {
		t.Fatal(err)
	}
	runner.Wait()
	last := seen[len(seen)-1]
	if !last.Closed || last.Verdict == nil || last.Verdict.Verdict != Pass || last.Requests != 400 || last.Done != last.Total {
		t.Errorf("last %+v", last)
	}
	under := 0
	for i, s := range seen {
		if i > 0 && s.Requests < seen[i-1].Requests {
			t.Errorf("requests run back: %d, %d", seen[i-1].Requests, s.Requests)
		}
		if s.Running && s.Phase == phaseLoad && s.Bound > 0 && s.Bound <= 1 {
			under++
		}
	}
	if under == 0 {
		t.Errorf("nothing was seen of the load in %d looks", len(seen))
	}
}

// busyPort is a port that this process has for as long as the test lasts.
func busyPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
