package cmd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A together is many commands of our program at the same time, each a process of its own.
type together struct {
	*lane
	mu    sync.Mutex
	ended map[int]int // commands by exit status
}

// run waits for commands that were started in an order of the seed's, a few milliseconds apart at most. Each must
// end with one of the statuses 0, 4 (refused) and 7 (busy), and an error must say why.
func (g *together) run(random *rand.Rand, commands [][]string) {
	g.Helper()
	g.ended = map[int]int{}
	random.Shuffle(len(commands), func(i, j int) { commands[i], commands[j] = commands[j], commands[i] })
	var all sync.WaitGroup
	for _, args := range commands {
		all.Go(func() {
			status, out, errs := g.onebit(args...)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.ended[status]++
			missing := status == 3 && (args[1] == "unblock" || args[1] == "unhold" || args[1] == "remove")
			if status != 0 && status != 4 && status != 7 && !missing {
				g.Errorf("%v ended with %d: %s%s", args, status, out, errs)
			}
			if status != 0 && !strings.Contains(errs, "1bit: ") {
				g.Errorf("%v ended with %d and does not say why", args, status)
			}
		})
		time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
	}
	all.Wait()
}

// testTogether has 50 switches and rollbacks of one service and 20 of a second one at work at the same time, with
// status, gc, installs and removals between them. What is recorded then reads as some order of them.
func testTogether(t *testing.T, l *lane, archive string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	g := &together{lane: l.in(t)}
	other := "walked-too.service"
	g.writeUnit(other)
	g.reload()
	t.Cleanup(func() {
		_, _, _ = g.onebit("pkg", "unswitch", other)
		if err := os.Remove(filepath.Join(g.unitDir, other)); err != nil {
			t.Error(err)
		}
	})
	g.must("pkg", "unswitch", g.unit)
	g.serve()
	onB(g.lane)
	ids := []string{"aaaaaaa", "bbbbbbb", "ccccccc"}
	var commands [][]string
	for i := range 50 {
		unit := []string{g.unit, g.unit, other, g.unit, other}[i%5]
		switch {
		case i%4 == 3:
			commands = append(commands, []string{"pkg", "rollback", unit})
		case i%16 == 5:
			commands = append(commands, []string{"pkg", "unblock", unit, "hrx-" + ids[random.IntN(3)]})
		default:
			commands = append(commands, []string{"pkg", "switch", unit, ids[random.IntN(3)]})
		}
	}
	for range 20 {
		commands = append(commands, []string{"pkg", "switch", g.unit, ids[random.IntN(3)]})
	}
	for range 3 {
		commands = append(commands, []string{"pkg", "install", archive}, []string{"pkg", "remove", "hrx-ddddddd"})
	}
	commands = append(commands,
		[]string{"pkg", "gc", "--keep", "0", "--keep-days", "0", "--dry-run"},
		[]string{"pkg", "hold", other, "--reason", "for a moment"}, []string{"pkg", "unhold", other})
	// Meanwhile status is true whenever it is asked.
	done := make(chan struct{})
	var watching sync.WaitGroup
	asked := 0
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				g.glance(other)
				asked++
			}
		}
	})
	g.run(random, commands)
	close(done)
	watching.Wait()
	if asked == 0 {
		t.Error("status was not asked meanwhile")
	}
	t.Logf("ended: %v, status asked %d times", g.ended, asked)
	// Blocks and the hold refuse many, and how many wait for their turn in vain depends on how busy the machine is.
	if g.ended[0] < 5 {
		t.Errorf("only %d of %d ended well", g.ended[0], len(commands))
	}
	for _, unit := range []string{g.unit, other} {
		g.agree(unit)
	}
	g.wantNoLeftovers("together")
	g.must("pkg", "install", archive)
	g.must("pkg", "verify")
}

// glance asks for the status of both services, while others change them.
func (g *together) glance(other string) {
	status, out, errs := g.onebit("-o", "json", "pkg", "status", g.unit, other)
	var doc struct{ Services []laneStatus }
	if err := json.Unmarshal([]byte(out), &doc); status != 0 || err != nil || len(doc.Services) != 2 {
		g.Errorf("status ended with %d, %v: %s", status, err, errs)
		return
	}
	for _, s := range doc.Services {
		if !strings.HasPrefix(s.armed(), "hrx-") {
			g.Errorf("meanwhile %q is armed", s.armed())
		}
	}
}

// agree fails where history, files and what is loaded differ.
func (g *together) agree(unit string) {
	g.Helper()
	last := g.chain("together", unit)
	u, err := g.m.Unit(g.Context(), unit)
	if err != nil {
		g.Fatal(err)
	}
	loaded := ""
	for _, pair := range u.Environment {
		if value, ok := strings.CutPrefix(pair, "ONEBIT_LLAMA_SERVER="+g.dir+"/data/1bit-"); ok {
			loaded, _, _ = strings.Cut(value, "/")
		}
	}
	onDisk := "hrx-aaaaaaa"
	data, err := os.ReadFile(filepath.Join(g.unitDir, unit+".d", "zz-1bit.conf"))
	if err == nil {
		_, rest, _ := strings.Cut(string(data), g.dir+"/data/1bit-")
		onDisk, _, _ = strings.Cut(rest, "/")
	}
	if last != "" && last != loaded || loaded != onDisk {
		g.Errorf("%s: the last record ends at %s, %s is loaded, the drop-in says %s", unit, last, loaded, onDisk)
	}
	if u.NeedDaemonReload {
		g.Errorf("%s needs a reload", unit)
	}
}

// testLocks: nobody inherits a lock of ours, and a killed holder of one leaves nothing to clean up.
func testLocks(t *testing.T, l *lane) {
	l = l.in(t)
	l.must("pkg", "unswitch", l.unit)
	l.serve()
	l.must("pkg", "switch", l.unit, "bbbbbbb", "--restart", "--watch", "0s")
	u, err := l.m.Unit(t.Context(), l.unit)
	if err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", u.ControlGroup, "cgroup.procs"))
	if err != nil || len(strings.Fields(string(procs))) == 0 {
		t.Fatalf("%q, %v", procs, err)
	}
	for _, pid := range strings.Fields(string(procs)) {
		links, err := filepath.Glob("/proc/" + pid + "/fd/*")
		if err != nil || len(links) < 3 {
			t.Errorf("process %s has the files %v, %v", pid, links, err)
		}
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && (strings.HasPrefix(to, l.state()) || strings.HasPrefix(to, l.dropIns()) ||
				strings.HasSuffix(to, ".lock")) {
				t.Errorf("the service's process %s holds %s", pid, to)
			}
		}
	}
	// Killed while it holds the unit's lock; two come at once, and both are right about who is first.
	lock := map[string]uint64{}
	inode := func(path string) uint64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	for _, path := range []string{l.dropIns(), filepath.Join(l.state(), "store.lock")} {
		lock[path] = inode(path)
	}
	quiet, _ := l.disturbed(nil, "pkg", "switch", l.unit, "ccccccc")
	l.must("pkg", "switch", l.unit, "bbbbbbb")
	last := ""
	for _, p := range points(quiet.Calls, false) {
		if strings.HasPrefix(p.where, "SIGKILL at renameat2") {
			last = p.where
			if r, _ := l.disturbed(p.args, "pkg", "switch", l.unit, "ccccccc"); r.Exit != 137 {
				t.Fatalf("%s: it ended with %d", p.where, r.Exit)
			}
		}
	}
	if last == "" {
		t.Fatal("no rename to be killed at")
	}
	g := &together{lane: l}
	g.run(rand.New(rand.NewPCG(1, 0)), [][]string{{"pkg", "switch", l.unit, "aaaaaaa"}, {"pkg", "switch", l.unit, "ccccccc"}})
	if !maps.Equal(g.ended, map[int]int{0: 2}) {
		t.Errorf("after a killed one two ended with %v", g.ended)
	}
	g.agree(l.unit)
	l.wantNoLeftovers("after a killed one")
	for path, was := range lock {
		if now := inode(path); now != was {
			t.Errorf("%s was %d and is %d: a lock was replaced", path, was, now)
		}
	}
	// A number of a process in a lock file means nothing.
	if err := os.WriteFile(filepath.Join(l.state(), "store.lock"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must("pkg", "switch", l.unit, "bbbbbbb")
	fmt.Fprintln(t.Output(), "killed last at", last)
}
