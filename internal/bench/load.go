package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/acceptance/answers"
	"github.com/1bit-systems/pkg/acceptance/load"
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

const (
	onlyLoad = "load" // the load generator

	loadRounds      = 5
	loadTime        = 3 * time.Second // of one run
	loadConnections = 16
	paceTime        = 20 * time.Second
	paceRate        = 50 // requests a second
)

// load measures the load generator: its rate against wrk's, on one trivial server and with as many connections, and
// the processor time it takes at a steady rate from a server that answers as llama-server does.
func (b *bench) load() (err error) {
	work, err := os.MkdirTemp("", "bench-load-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	trivial, stop, err := b.loadServer(replyTrivial)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.loadRate(trivial, filepath.Join(work, "post.lua")); err != nil {
		return err
	}
	stop()
	for _, p := range []pace{
		{"load_core_at_50_a_second", "answers of 96 tokens with log-probabilities", replyWhole, 2},
		{"load_core_at_50_streams_a_second", "the same in 97 events each", replyEvents, 32},
	} {
		address, stop, err := b.loadServer(p.reply)
		if err != nil {
			return err
		}
		err = b.loadPace(address, p)
		stop()
		if err != nil {
			return err
		}
	}
	return evidenceCost(filepath.Join(work, "answers.zst"))
}

// loadServer starts the server to measure against as a process of its own.
func (b *bench) loadServer(reply string) (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(b.ctx, self, "-load-server", reply)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = fmt.Fscanln(out, &address)
	}
	if err != nil {
		return "", nil, fmt.Errorf("start the server to load: %w", err)
	}
	return address, sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}), nil
}

var wrkRate = lazyregexp.New(`Requests/sec:\s+([0-9.]+)`)

// loadRequest is what ours sends; wrk sends a body of the same length.
func loadRequest(stream bool) engine.CompletionRequest {
	return engine.CompletionRequest{Prompt: strings.Repeat("seven swans swam ", 10), NPredict: 96, NProbs: 1, Stream: stream}
}

// loadRate compares the rates, taken in turn.
func (b *bench) loadRate(address, script string) error {
	if !has("wrk") {
		fmt.Println("# no wrk: the load generator's rate is not compared")
		return nil
	}
	body := fmt.Sprintf(`{"prompt":"%s","n_predict":96,"temperature":0,"n_probs":1,"cache_prompt":false,"seed":0,"stream":false,"post_sampling_probs":false}`,
		loadRequest(false).Prompt)
	lua := fmt.Sprintf("wrk.method = 'POST'\nwrk.body = '%s'\nwrk.headers['Content-Type'] = 'application/json'\n", body)
	if err := os.WriteFile(script, []byte(lua), 0o644); err != nil {
		return err
	}
	command := []string{"wrk", "-t2", fmt.Sprint("-c", loadConnections), fmt.Sprintf("-d%.0fs", loadTime.Seconds()), "-s", script, "http://" + address + "/completion"}
	var ours, peer []float64
	for range loadRounds {
		rate, err := ourRate(b.ctx, address)
		if err != nil {
			return err
		}
		ours = append(ours, rate)
		out, err := output(b.ctx, command[0], command[1:]...)
		if err != nil {
			return err
		}
		m := wrkRate().FindStringSubmatch(out)
		if m == nil || strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
			return fmt.Errorf("wrk did not do its work:\n%s", out)
		}
		if rate, err = strconv.ParseFloat(m[1], 64); err != nil {
			return err
		}
		peer = append(peer, rate)
	}
	a, p := median(ours), median(peer)
	verdict := "short"
	if a/p >= 0.5 {
		verdict = "ok"
	}
	fmt.Printf("bench load_vs_wrk %.2f ratio target >=0.50 %s  [ours %.0f requests/s, peer %.0f: %s]\n", a/p, verdict, a, p, strings.Join(command[:4], " "))
	return nil
}

// sender sends requests and judges the answers, as a run does.
type sender struct {
	client  engine.Client
	request engine.CompletionRequest
	begin   time.Time

	mu      sync.Mutex
	latency load.Histogram
	err     error
}

func (s *sender) clock() int64 { return time.Since(s.begin).Microseconds() }

func (s *sender) send(ctx context.Context, _ int, intended int64, id int) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request := s.request
	request.Seed = int64(id)
	a, err := s.client.Complete(ctx, request)
	if err == nil {
		if f := a.Faults(); len(f) > 0 {
			err = fmt.Errorf("%s: %s", f[0].Face, f[0].Detail)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
	s.latency.Record(s.clock() - intended)
}

func (s *sender) run(ctx context.Context, schedule load.Schedule) error {
	s.begin = time.Now()
	load.Run(ctx, schedule, s.clock, func(_ context.Context, id int) (int, bool) { return id, true }, s.send)
	return errors.Join(s.err, ctx.Err())
}

// ourRate sends for the time of one run, from as many workers as wrk has connections.
func ourRate(ctx context.Context, address string) (float64, error) {
	s := &sender{client: engine.Client{BaseURL: "http://" + address, Reuse: true}, request: loadRequest(false)}
	if err := s.run(ctx, load.Schedule{InFlight: loadConnections, Duration: loadTime}); err != nil {
		return 0, err
	}
	return float64(s.latency.Count()) / time.Since(s.begin).Seconds(), nil
}

// A pace is a steady load of paceRate requests a second, in bursts.
type pace struct {
	name, what, reply string
	burst             int // requests at once
}

// loadPace measures the share of one core that a steady load takes in this process.
func (b *bench) loadPace(address string, p pace) error {
	s := &sender{client: engine.Client{BaseURL: "http://" + address, Reuse: true}, request: loadRequest(p.reply == replyEvents)}
	every := time.Duration(p.burst) * time.Second / paceRate
	before := processorTime()
	if err := s.run(b.ctx, load.Schedule{Kind: load.Burst, InFlight: p.burst, Every: every, Duration: paceTime}); err != nil {
		return err
	}
	took := time.Since(s.begin)
	share := 100 * (processorTime() - before).Seconds() / took.Seconds()
	target := "target <=2 " + met(share, 2)
	if p.reply == replyEvents { // every event wakes its reader: 4,850 a second
		target = "no target"
	}
	fmt.Printf("bench %s %.2f %% %s  [%.1f requests/s for %.0f s, %s; latency %.1f ms, at most %.1f]\n", p.name, share, target,
		float64(s.latency.Count())/took.Seconds(), took.Seconds(), p.what, float64(s.latency.Quantile(0.5))/1000, float64(s.latency.Max())/1000)
	return nil
}

// evidenceCost measures what an answer costs as evidence.
func evidenceCost(path string) (err error) {
	w, err := answers.Create(path)
	if err != nil {
		return err
	}
	const n = 500
	size, before := 0, processorTime()
	for id := range n {
		raw := llamaAnswer(uint64(id))
		size += len(raw)
		if err := w.Add(id, raw); err != nil {
			return err
		}
	}
	cpu := processorTime() - before
	if err := w.Close(); err != nil {
		return err
	}
	each := fileSize(path) * 1e6 / n
	fmt.Printf("bench evidence_of_a_request %.0f bytes target <=2000 %s  [answers of 96 tokens with log-probabilities, %.1f kB raw; %.2f ms of a core each]\n",
		each, met(each, 2000), float64(size)/n/1000, cpu.Seconds()*1000/n)
	return nil
}

// processorTime is what this process took of the processors.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
