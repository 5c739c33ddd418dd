package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// onlyLogs is the name of what is measured on a server log.
const onlyLogs = "log"

const (
	logSize   = 1e9 // bytes
	logRounds = 5
	parserMin = 200 // MB/s on one core
	joinerMax = 256 // MB
)

// logs measures the reader of server logs: lines to events, and events to tasks. Its times are those of the
// processor, since the reader runs beside a load and the figure is what it takes from a core.
func (b *bench) logs() (err error) {
	dir, err := os.MkdirTemp("", "bench-log-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "server.log")
	requests, err := writeLog(path, logSize)
	if err != nil {
		return err
	}
	reader := func(act string) func(int) (run, error) {
		return func(int) (run, error) {
			cmd := exec.CommandContext(b.ctx, filepath.Join(b.bin, "bench"), "-log", act, path)
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
			return onOneCore(cmd)
		}
	}
	const count = `grep -c "stop processing"`
	grep := func(int) (run, error) {
		cmd := exec.CommandContext(b.ctx, "grep", "-c", "stop processing", path)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		return onOneCore(cmd)
	}
	size := fileSize(path)
	ours, peer, _, err := inTurn(logRounds, reader("parse"), grep)
	if err != nil {
		return err
	}
	speed("log_parser", size/ours, parserMin, fmt.Sprintf("%.0f MB, %d requests, median of %d, one core", size, requests, logRounds))
	compared("log_parser_vs_grep", ours, peer, "s", count)
	ours, peer, memory, err := inTurn(logRounds, reader("join"), grep)
	if err != nil {
		return err
	}
	speed("log_join", size/ours, parserMin, "the same log, lines to tasks")
	compared("log_join_vs_grep", ours, peer, "s", count)
	fmt.Printf("bench log_join_memory %.0f MB target <%d %s  [%.0f MB of log]\n", memory, joinerMax, met(memory, joinerMax), size)
	return nil
}

// onOneCore takes the time of the processor for the time.
func onOneCore(cmd *exec.Cmd) (run, error) {
	r, err := timedCommand(cmd)
	r.seconds = r.cpu
	return r, err
}

// speed prints one figure that has a least value.
func speed(name string, value, least float64, of string) {
	verdict := "short"
	if value >= least {
		verdict = "ok"
	}
	fmt.Printf("bench %s %.0f MB/s target >=%.0f %s  [%s]\n", name, value, least, verdict, of)
}

// readLog is the process that is measured. It says how much it found, so that a reader that finds nothing shows.
func readLog(act, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r engine.LogReader
	events, tasks, whole := 0, 0, 0
	j := engine.Joiner{Done: func(t engine.Task) {
		tasks++
		if t.Finished && t.How != "" && t.Tokens > 0 && t.TotalMS > 0 {
			whole++
		}
	}}
	take := func(engine.LogEvent) { events++ }
	if act == "join" {
		take = func(ev engine.LogEvent) { events++; j.Add(ev) }
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		r.Feed(buf[:n], 0, take)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	r.Flush(0, take)
	j.Flush()
	fmt.Println(events, "events", tasks, "tasks", whole, "whole")
	if events == 0 || act == "join" && (tasks == 0 || whole != tasks) {
		return fmt.Errorf("read %s: %d events, %d tasks of which %d are whole", path, events, tasks, whole)
	}
	return nil
}

// A logWriter writes the log of a server with four slots in a closed loop, line for line as llama-server does.
type logWriter struct {
	w     *bufio.Writer
	rnd   *rand.Rand
	clock time.Duration
	size  int
}

// writeLog writes a log of about the given size and returns the number of requests in it.
func writeLog(path string, size int) (requests int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	l := &logWriter{w: bufio.NewWriterSize(f, 1<<20), rnd: rand.New(rand.NewPCG(5, 45))}
	l.line('I', "srv    load_model: initializing, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'")
	var tasks [4]int
	next, reused := 0, 0
	for slot := range tasks {
		tasks[slot] = next
		l.launch(slot, next)
		next++
	}
	for l.size < size {
		slot := l.rnd.IntN(len(tasks))
		reused += 4 + l.rnd.IntN(92)
		l.finish(slot, tasks[slot], reused)
		requests++
		next += 1 + l.rnd.IntN(100) // the server numbers its own small tasks too
		tasks[slot] = next
		l.launch(slot, next)
	}
	for slot := range tasks {
		l.finish(slot, tasks[slot], reused)
		requests++
	}
	if err := l.w.Flush(); err != nil {
		return 0, err
	}
	return requests, f.Close()
}

func (l *logWriter) line(level byte, format string, args ...any) {
	l.clock += time.Duration(10+l.rnd.IntN(400)) * time.Microsecond
	t := l.clock
	n, _ := fmt.Fprintf(l.w, "%d.%02d.%03d.%03d %c ", int(t.Minutes()), int(t.Seconds())%60, t.Milliseconds()%1000, t.Microseconds()%1000, level)
	m, _ := fmt.Fprintf(l.w, format, args...)
	l.w.WriteByte('\n') // a failed write shows in Flush
	l.size += n + m + 1
}

func (l *logWriter) launch(slot, task int) {
	l.line('I', "slot get_availabl: id %2d | task -1 | selected slot by LRU, n_tokens = %d, t_last = %d", slot, l.rnd.IntN(3)*262, l.clock.Microseconds()+34161568263)
	l.line('I', "srv  get_availabl: updating prompt cache")
	l.line('I', "srv        update:  - cache state: %d prompts, %.3f MiB (limits: 8192.000 MiB, 8192 tokens, 31717832 est)", 6+l.rnd.IntN(40), l.rnd.Float64()*900)
	l.line('I', "srv  get_availabl: prompt cache update took %.2f ms", l.rnd.Float64())
	l.line('I', "slot launch_slot_: id %2d | task %d | processing task, is_child = 0", slot, task)
	switch l.rnd.IntN(8) {
	case 0:
		l.line('W', "srv  try_clear_id: purging slot %d with %d tokens", l.rnd.IntN(4), 1+l.rnd.IntN(2000))
	case 1:
		l.line('W', "slot   operator(): id %2d | task %d | need to evaluate at least 1 token for each active slot (n_past = 9, task.n_tokens() = 9)", slot, task)
	case 2:
		l.line('I', "slot print_timing: id %2d | task %d | n_gen =     40, tg =  30.12 t/s, tg_3s =  29.80 t/s", slot, task)
	}
}

func (l *logWriter) finish(slot, task, reused int) {
	prompt, n := 20+l.rnd.IntN(2000), 4+l.rnd.IntN(92)
	promptMS, evalMS := float64(prompt)*(1+l.rnd.Float64()), float64(n)*(20+l.rnd.Float64()*20)
	l.line('I', "slot print_timing: id %2d | task %d | prompt eval time = %10.2f ms / %5d tokens (%8.2f ms per token, %8.2f tokens per second)",
		slot, task, promptMS, prompt, promptMS/float64(prompt), 1000*float64(prompt)/promptMS)
	l.line('I', "slot print_timing: id %2d | task %d |        eval time = %10.2f ms / %5d tokens (%8.2f ms per token, %8.2f tokens per second)",
		slot, task, evalMS, n, evalMS/float64(n), 1000*float64(n)/evalMS)
	l.line('I', "slot print_timing: id %2d | task %d |       total time = %10.2f ms / %5d tokens", slot, task, promptMS+evalMS, prompt+n)
	l.line('I', "slot print_timing: id %2d | task %d |    graphs reused = %10d", slot, task, reused)
	l.line('I', "slot print_timing: id %2d | task %d |   graph reallocs = %10d    / %5d        (same size) / (changed size)", slot, task, 0, 0)
	l.line('I', "slot      release: id %2d | task %d | stop processing: n_tokens = %d, truncated = 0", slot, task, prompt+n-1)
	l.line('I', "srv  log_server_r: done request: POST /completion 127.0.0.1 200")
}
