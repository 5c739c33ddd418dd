package neighbour

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// serverJob is a second llama-server with clients of its own: a closed loop of workers that ask for log-probabilities,
// so that a NaN of this server is seen as well as one of the candidate. One life lasts until the neighbour is stopped.
type serverJob struct {
	options engine.ProcessOptions
	client  engine.Client
	workers int
	run     int
	log     *logReader

	mu       sync.Mutex
	answered int64 // with tokens
	sent     int
	troubles tally
	ready    bool
	late     string // why it was given up before it was ready
}

const (
	serverReady   = 10 * time.Minute // until a model has loaded
	serverAnswer  = 3 * time.Minute  // until an answer is given up
	serverTokens  = 64               // of an answer
	serverContext = 4096             // tokens of one worker's slot; a model's own would take its device
	serverPause   = 100 * time.Millisecond
	defaultWorker = 2
)

func beginServer(ctx context.Context, o *Options, run int) (job, error) {
	port, err := engine.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	workers := o.Workers
	if workers <= 0 {
		workers = defaultWorker
	}
	args := []string{"-m", o.Model, "--host", "127.0.0.1", "--port", strconv.Itoa(port),
		"--parallel", strconv.Itoa(workers), "--ctx-size", strconv.Itoa(serverContext * workers)}
	args = append(args, o.Args...) // the last of two equal flags counts
	return &serverJob{
		options: engine.ProcessOptions{Program: o.Programs["llama-server"], Args: args, Env: o.Env, LogPath: o.file(FileLog)},
		client:  engine.Client{BaseURL: "http://127.0.0.1:" + strconv.Itoa(port)},
		workers: workers, run: run, log: newLogReader(o.file(FileLog)),
	}, nil
}

func (j *serverJob) process() engine.ProcessOptions { return j.options }

// beside waits for the server and then keeps it busy.
func (j *serverJob) beside(ctx context.Context, p *engine.Process) {
	ready, cancel := context.WithTimeout(ctx, serverReady)
	defer cancel()
	err := (&engine.Server{Process: p}).WaitReady(ready, &j.client)
	j.mu.Lock()
	j.ready = err == nil
	if ready.Err() != nil && ctx.Err() == nil {
		j.late = err.Error()
	}
	j.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			p.Stop(context.WithoutCancel(ctx), 0) // attempt reports what is left
		}
		return
	}
	load, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for range j.workers {
		workers.Go(func() {
			for load.Err() == nil {
				if !j.ask(load) {
					wait(load, time.NewTimer(serverPause)) // who answers nothing is not asked without end
				}
			}
		})
	}
	select {
	case <-ctx.Done():
	case <-p.Exited():
	}
	stop()
	workers.Wait()
}

// ask sends one request and tells whether it was answered. What was in flight when the load stopped, or when the server
// ended, tells nothing.
func (j *serverJob) ask(ctx context.Context) bool {
	j.mu.Lock()
	n := j.sent
	j.sent++
	j.mu.Unlock()
	deadline, cancel := context.WithTimeout(ctx, serverAnswer)
	defer cancel()
	a, err := j.client.Complete(deadline, engine.CompletionRequest{
		Prompt: prompt(j.run, n), NPredict: serverTokens, NProbs: 1, Temperature: 0.8, Seed: int64(n + 1),
	})
	if ctx.Err() != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.troubles.add("no answer", err.Error())
		return false
	}
	for _, f := range a.Faults() {
		j.troubles.add(f.Face, f.Detail)
	}
	if a.Status != http.StatusOK || a.TokensPredicted <= 0 {
		return false
	}
	j.answered++
	return true
}

// prompt makes a text that no other request begins with, of one of three lengths.
func prompt(run, n int) string {
	length := []int{8, 40, 120}[n%3]
	return fmt.Sprintf("%d.%d neighbour ", n, run) + strings.Repeat("of the house ", length)
}

func (j *serverJob) proof() (int64, bool) {
	j.log.look()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answered, true
}

func (j *serverJob) verdict(exit string) (string, []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	findings := append(j.troubles.list(), j.log.finish()...)
	if exit == ExitStopped {
		return exit, findings
	}
	if exit == ExitOK {
		exit = "exit status 0"
	}
	switch {
	case j.late != "":
		exit = "was never ready: " + j.late
	case !j.ready:
		exit = "was never ready: " + exit
	default:
		exit = "ended by itself: " + exit
	}
	return exit, append(findings, "llama-server "+exit)
}
