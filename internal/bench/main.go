// Bench prints the program's figures as ratios against named peers, measured in the same run on the same files:
//
//	bench <name> <value> ratio target <op><number> ok|short  [ours <median>, peer <median>: <peer's command>]
//
// Every command is timed as a whole process, ours and the peer's in turn, and the medians are compared. It
// reports and gates nothing: its exit status is 0 whatever falls short.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	inHost := flag.String("switch-in", "", "measure the switch here, with the files of this folder (used inside the test host)")
	flag.Parse()
	err := measure(ctx, *inHost)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, inHost string) error {
	if inHost != "" {
		return benchSwitch(ctx, inHost)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Dir(self)
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
	for _, step := range []func() error{b.build, b.install, b.switchInHost} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	ctx             context.Context
	bin, work, tree string
	archive         string
}

// A figure is one line of the report.
func figure(name string, ours, peer float64, unit string, limit float64, command string) {
	ratio, verdict := ours/peer, "short"
	if ratio <= limit {
		verdict = "ok"
	}
	fmt.Printf("bench %s %.2f ratio target <=%.2f %s  [ours %.4g %s, peer %.4g %s: %s]\n",
		name, ratio, limit, verdict, ours, unit, peer, unit, command)
}

// timed runs a program and returns its wall time in seconds.
func timed(ctx context.Context, name string, args ...string) (float64, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return time.Since(start).Seconds(), nil
}

// inTurn times ours and the peer's command alternately and returns their medians.
func inTurn(rounds int, ours, peer func(round int) (float64, error)) (float64, float64, error) {
	var a, b []float64
	for round := range rounds {
		for _, side := range []struct {
			run  func(int) (float64, error)
			into *[]float64
		}{{ours, &a}, {peer, &b}} {
			seconds, err := side.run(round)
			if err != nil {
				return 0, 0, err
			}
			*side.into = append(*side.into, seconds)
		}
	}
	return median(a), median(b), nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

const recipe = `flavour: hrx
include: [1bit, hrx/llama]
entry_points: {1bit: 1bit, llama-server: hrx/llama/bin/llama-server}
front_door: [serve]
components:
  engine: {commit: 7871c71d}
`

func (b *bench) build() error {
	path := filepath.Join(b.work, "recipe.yaml")
	if err := os.WriteFile(path, []byte(recipe), 0o644); err != nil {
		return err
	}
	peerOut := filepath.Join(b.work, "peer.tar.zst")
	ours, peer, err := inTurn(3, func(round int) (float64, error) {
		out := filepath.Join(b.work, fmt.Sprint("out", round))
		return timed(b.ctx, filepath.Join(b.bin, "1bit"), "pkg", "build", "--recipe", path, "--tree", b.tree, "--out", out, "--version", "v2026.44")
	}, func(int) (float64, error) {
		return timed(b.ctx, "sh", "-c", `tar -C "$1" -cf - . | zstd -q -f -T0 -19 -o "$2"`, "sh", b.tree, peerOut)
	})
	if err != nil {
		return err
	}
	const command = "tar -cf - | zstd -T0 -19"
	figure("build_time_vs_zstd19", ours, peer, "s", 0.3, command)
	found, err := filepath.Glob(filepath.Join(b.work, "out0", "*.tar.zst"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d archives built: %v", len(found), err)
	}
	b.archive = found[0]
	size := func(path string) float64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return float64(info.Size()) / 1e6
	}
	figure("build_size_vs_zstd19", size(b.archive), size(peerOut), "MB", 1.10, command)
	return nil
}

func (b *bench) install() error {
	ours, peer, err := inTurn(9, func(round int) (float64, error) {
		home := filepath.Join(b.work, fmt.Sprint("home", round))
		return timed(b.ctx, filepath.Join(b.bin, "1bit"), "--data-home", home, "--state-home", home+"-state", "pkg", "install", b.archive)
	}, func(round int) (float64, error) {
		return timed(b.ctx, "sh", "-c", `mkdir "$2" && tar --zstd -xf "$1" -C "$2" && sync -f "$2"`, "sh",
			b.archive, filepath.Join(b.work, fmt.Sprint("tar", round)))
	})
	if err != nil {
		return err
	}
	figure("install_vs_tar", ours, peer, "s", 1.5, "tar --zstd -xf, then sync -f")
	return nil
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
