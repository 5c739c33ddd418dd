// Bench prints the program's figures as ratios against named peers, measured in the same run on the same files:
//
//	bench <name> <value> ratio target <op><number> ok|short  [ours <median>, peer <median>: <peer's command>]
//
// The packages are of the real engine, of 2,000 small files and of one file of 2 GiB. Every command is timed as a
// whole process, ours and the peer's in turn, and the medians are compared. It reports and gates nothing: its exit
// status is 0 whatever falls short.
//
// What has no name of a sample (a switch, a rollback, the status of many services) is measured against systemctl in
// a test host, or, by another user than root, on the user's own systemd.
//
// The server log is one of 1 GB, read by a process on one core: its speed, in MB a second of that core, has a target of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/internal/fakeengine"
	"github.com/1bit-systems/pkg/internal/realengine"
)

func main() {
	if filepath.Base(os.Args[0]) == "llama-server" { // the engine of a service that is measured
		os.Exit(fakeengine.Main(os.Args[1:], os.Getenv, os.Stderr, os.Exit))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	inHost := flag.String("switch-in", "", "measure the acts on services here, with the programs of this folder (used inside the test host)")
	samplesIn := flag.String("make-samples", "", "write the trees to measure with into this folder, from the engine tree that is the argument")
	only := flag.String("only", "", "measure only what has this in its name: engine, 2000_small, 2GiB_file or switch (switch, rollback, status), log, load, verdict")
	logAct := flag.String("log", "", "parse or join the server log that is the argument, and say how much it holds (used by the benchmark of that name)")
	loadServer := flag.String("load-server", "", "answer requests in this way: trivial, whole or events (used by the benchmark of the load generator)")
	flag.Parse()
	var err error
	switch {
	case *loadServer != "":
		err = serveLoad(ctx, os.Stdout, *loadServer)
	case *samplesIn != "":
		err = makeSamples(*samplesIn, flag.Arg(0))
	case *logAct != "":
		err = readLog(*logAct, flag.Arg(0))
	default:
		err = measure(ctx, *inHost, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, inHost, only string) error {
	if inHost != "" {
		return benchSwitch(ctx, inHost)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Dir(self)
	if only == onlySwitch {
		return (&bench{ctx: ctx, bin: bin}).switchInHost()
	}
	if only == onlyLogs {
		return (&bench{ctx: ctx, bin: bin}).logs()
	}
	if only == onlyVerdict {
		return (&bench{ctx: ctx, bin: bin}).verdict()
	}
	if only == onlyLoad {
		return (&bench{ctx: ctx, bin: bin}).load()
	}
	cache, err := realengine.CacheDir()
	if err != nil {
		return err
	}
	tree, err := realengine.Fetch(ctx, cache, os.Stderr)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(cache), "bench-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	fmt.Printf("# on %s, engine tree %s\n", fileSystem(work), tree.Version)
	b := &bench{ctx: ctx, bin: bin, work: work, tree: tree.Dir}
	return b.all(only)
}

// onlySwitch is the name of what is measured without a sample.
const onlySwitch = "switch"

type bench struct {
	ctx             context.Context
	bin, work, tree string
}

// a package of a sample, built.
type built struct {
	sample
	archive string
}

func (b *bench) all(only string) error {
	samples, err := b.samples()
	if err != nil {
		return err
	}
	for _, s := range samples {
		if !strings.Contains(s.name, only) {
			continue
		}
		p, err := b.build(s)
		if err != nil {
			return err
		}
		for _, step := range []func(*built) error{b.install, b.verify, b.peers, b.shared} {
			if err := step(p); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	if strings.Contains(onlyVerdict, only) {
		if err := b.verdict(); err != nil {
			return err
		}
	}
	if strings.Contains(onlyLoad, only) {
		if err := b.load(); err != nil {
			return err
		}
	}
	if strings.Contains(onlyLogs, only) {
		if err := b.logs(); err != nil {
			return err
		}
	}
	if strings.Contains(onlySwitch, only) {
		return b.switchInHost()
	}
	return nil
}

// program is ours, with a data home of its own.
func (b *bench) program(home string, args ...string) (run, error) {
	return timed(b.ctx, filepath.Join(b.bin, "1bit"), append([]string{"--data-home", home, "--state-home", home + "-state"}, args...)...)
}

// switchInHost measures the switch where a user manager is at hand: as root inside a test host, else here.
func (b *bench) switchInHost() error {
	self := filepath.Join(b.bin, "bench")
	args := []string{"-switch-in", b.bin}
	if os.Getuid() == 0 {
		args = append([]string{"run", "--user", "ai", "--", self}, args...)
		self = filepath.Join(b.bin, "testhost")
	}
	cmd := exec.CommandContext(b.ctx, self, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
