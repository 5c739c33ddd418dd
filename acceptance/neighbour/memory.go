package neighbour

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/1bit-systems/pkg/engine"
)

// memoryJob is one round of memory pressure: a process takes GiB, writes every byte of it, holds it for a while and
// ends, which gives it back.
//
// The memory is that of tail(1), which keeps the last N bytes of what it reads until its input ends: N bytes of
// /dev/urandom, and then an input that stays open for as long as it holds them. Our own process could not do it, since
// the runner must not be the one whom the kernel ends for its memory, and a helper of our own would have to know the
// program that we are part of. Random bytes can be neither compressed nor merged. That they are there is the kernel's
// word (RssAnon), and it is told to end this process first if memory runs out.
type memoryJob struct {
	options engine.ProcessOptions
	pipe    string
	bytes   int64
	meminfo string

	mu       sync.Mutex
	holder   *engine.Process // nil: not started yet
	resident int64           // most bytes that were seen
	low      string          // why it was given back early
}

const (
	// memoryHold is how long the memory is held, in seconds. A round has to be short: only what is newly written
	// proves work.
	memoryHold = 3
	// memoryShare of the whole is left to others at least, and memoryLeast in bytes.
	memoryShare = 0.04
	memoryLeast = 1 << 30
)

const memoryScript = `echo 1000 > /proc/self/oom_score_adj
rm -f "$1" && mkfifo "$1" || exit
{ head -c "$2" /dev/urandom; sleep "$3"; } > "$1" &
exec tail -c "$2" < "$1" > /dev/null`

// gib is how much the plan asks for.
func (o *Options) gib() float64 {
	if o.GiB == 0 {
		return 1
	}
	return o.GiB
}

// checkMemory refuses to take what others need.
func (o *Options) checkMemory() error {
	const most = 1 << 20
	if !(o.gib() > 0 && o.gib() <= most) {
		return fmt.Errorf("gib: %v is no amount of memory", o.GiB)
	}
	free, floor, err := memory(meminfo)
	if err != nil {
		return err
	}
	if need := int64(o.gib() * (1 << 30)); free-need < floor {
		return fmt.Errorf("%s of memory are not to be had: %s are available, and %s are left to others", inGiB(need), inGiB(free), inGiB(floor))
	}
	return nil
}

const meminfo = "/proc/meminfo"

func beginMemory(_ context.Context, o *Options, _ int) (job, error) {
	j := &memoryJob{pipe: o.file("neighbour.pipe"), bytes: int64(o.gib() * (1 << 30)), meminfo: meminfo}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(j.pipe)
	if err != nil {
		return nil, err
	}
	j.options = engine.ProcessOptions{
		Program: "/bin/sh", Args: []string{"-c", memoryScript, "sh", path, strconv.FormatInt(j.bytes, 10), strconv.Itoa(memoryHold)},
		Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, LogPath: o.file(FileLog),
	}
	return j, nil
}

func (j *memoryJob) process() engine.ProcessOptions { return j.options }

// beside makes the process known to proof.
func (j *memoryJob) beside(_ context.Context, p *engine.Process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.holder = p
}

// proof looks how much is resident, and gives it all back when too little is left to others.
func (j *memoryJob) proof() (int64, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.holder == nil {
		return 0, false
	}
	if n, err := field(fmt.Sprintf("/proc/%d/status", j.holder.PID()), "RssAnon:"); err == nil {
		j.resident = max(j.resident, min(n, j.bytes))
	}
	free, floor, err := memory(j.meminfo)
	if err == nil && free < floor && j.low == "" {
		j.low = fmt.Sprintf("given back at %s: only %s were available, and %s are left to others", inGiB(j.resident), inGiB(free), inGiB(floor))
		j.holder.Stop(context.Background(), 0) // attempt reports what is left
	}
	return j.resident >> 20, j.resident >= j.bytes
}

func (j *memoryJob) verdict(exit string) (string, []string) {
	os.Remove(j.pipe)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.low != "" && exit != ExitStopped:
		return j.low, []string{j.low}
	case exit == ExitOK && j.resident < j.bytes:
		exit = fmt.Sprintf("only %s of %s were resident", inGiB(j.resident), inGiB(j.bytes))
		return exit, []string{exit}
	case exit != ExitOK && exit != ExitStopped:
		return exit, []string{fmt.Sprintf("the process that held %s ended: %s", inGiB(j.resident), exit)}
	}
	return exit, nil
}

// memory reads what is available and what has to stay so, in bytes.
func memory(path string) (free, floor int64, err error) {
	if free, err = field(path, "MemAvailable:"); err != nil {
		return 0, 0, err
	}
	total, err := field(path, "MemTotal:")
	return free, max(memoryLeast, int64(memoryShare*float64(total))), err
}

// field reads a number of kB from a file of /proc, as bytes.
func field(path, name string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s of %s: %w", name, path, err)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("read %s: there is no %s", path, name)
}

func inGiB(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }
