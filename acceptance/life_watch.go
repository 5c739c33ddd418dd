package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// sample is one line of samples.jsonl.
type sample struct {
	At              time.Time `json:"at"`
	MemAvailableGiB *float64  `json:"mem_available_gib"`
	GTTUsedGiB      *float64  `json:"gtt_used_gib"`
	ServerMiB       *float64  `json:"server_mib"` // anonymous and swapped memory of the server
	LoadAverage     string    `json:"load_average"`
	Requests        int       `json:"requests"`
}

// sample appends the state of host and server. It gates nothing.
func (l *life) sample() {
	facts := readHostFacts(l.o.Root)
	s := sample{At: l.o.Now(), MemAvailableGiB: facts.MemAvailableGiB, GTTUsedGiB: facts.GTTUsedGiB, LoadAverage: facts.LoadAverage}
	l.mu.Lock()
	s.Requests = l.ended
	pid := l.pid
	l.mu.Unlock()
	if pid > 0 {
		s.ServerMiB = residentMiB(l.o.Root, pid)
	}
	b, err := json.Marshal(s)
	if err != nil {
		l.fail(err)
		return
	}
	f, err := os.OpenFile(filepath.Join(l.dir, SamplesName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		l.fail(fmt.Errorf("append to %s: %w", SamplesName, err))
		return
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		l.fail(fmt.Errorf("append to %s: %w", SamplesName, err))
	}
}

// tell calls the progress function, one call at a time.
func (l *life) tell() {
	l.telling.Lock()
	defer l.telling.Unlock()
	s := l.log.shape()
	l.mu.Lock()
	p := Progress{
		Phase: l.phase, Requests: l.ended, Faults: l.faults, BusyShare: s.busyShare(),
		Done: int64(l.ended), Total: int64(l.plan.Load.Requests), Elapsed: time.Duration(l.us()) * time.Microsecond,
	}
	from := l.from
	l.mu.Unlock()
	if from > 0 {
		if seconds := float64(l.us()-from) / 1e6; seconds > 0 {
			p.RequestsPerSecond = float64(p.Requests) / seconds
		}
		if d := time.Duration(l.plan.Load.Duration); d > 0 {
			p.Total = int64(d.Seconds())
			p.Done = min(p.Total, (l.us()-from)/1e6)
		}
	}
	l.o.Progress(p)
}
