package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// A run is what one execution of a command took.
type run struct {
	seconds float64
	cpu     float64 // seconds that processors were busy with it
	memory  float64 // peak resident set of the process, MB
}

// timed runs a program and waits for it.
func timed(ctx context.Context, name string, args ...string) (run, error) {
	return timedCommand(exec.CommandContext(ctx, name, args...))
}

func timedCommand(cmd *exec.Cmd) (run, error) {
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return run{}, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	r := run{seconds: time.Since(start).Seconds()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = float64(usage.Maxrss) / 1000
		r.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	return r, nil
}

// output runs a program and returns what it prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return string(out), nil
}

// inTurn runs ours and the peer's command alternately and returns the medians of their times, and the most memory
// that ours took.
func inTurn(rounds int, ours, peer func(round int) (run, error)) (a, b, memory float64, err error) {
	var one, other []float64
	for round := range rounds {
		r, err := ours(round)
		if err != nil {
			return 0, 0, 0, err
		}
		one, memory = append(one, r.seconds), max(memory, r.memory)
		if r, err = peer(round); err != nil {
			return 0, 0, 0, err
		}
		other = append(other, r.seconds)
	}
	return median(one), median(other), memory, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ratio prints one figure that has a target.
func ratio(name string, ours, peer float64, unit string, limit float64, command string) {
	value := ours / peer
	fmt.Printf("bench %s %.2f ratio target <=%.2f %s  [ours %.4g %s, peer %.4g %s: %s]\n",
		name, value, limit, met(value, limit), ours, unit, peer, unit, command)
}

// compared prints one figure that has none.
func compared(name string, ours, peer float64, unit, command string) {
	fmt.Printf("bench %s %.2f ratio no target  [ours %.4g %s, peer %.4g %s: %s]\n", name, ours/peer, ours, unit, peer, unit, command)
}

// memory prints the peak of a command of ours.
func memoryPeak(name string, mb float64) {
	const limit = 400
	fmt.Printf("bench %s %.0f MB target <%d %s\n", name, mb, limit, met(mb, limit))
}

func met(value, limit float64) string {
	if value <= limit {
		return "ok"
	}
	return "short"
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// fileSize is in MB.
func fileSize(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size()) / 1e6
}
