package neighbour

import (
	"context"
	"strconv"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// opsJob is a sweep of test-backend-ops, which computes every operation on the device and on the CPU and compares. On a
// host whose only backend is the CPU it does so only when told (-b CPU): otherwise it skips the CPU, says that all
// backends passed, and ends well without having done anything. So its own end proves nothing; tests that passed do.
type opsJob struct {
	options engine.ProcessOptions
	out     *tail
	log     *logReader
	passed  int64 // lines
	summed  int64 // of the summaries "N/N tests passed"
	failed  tally
}

func beginOps(_ context.Context, o *Options, _ int) (job, error) {
	p := engine.ProcessOptions{
		Program: o.Programs["test-backend-ops"], Args: append([]string{"test"}, o.Args...),
		Env: o.Env, LogPath: o.file(FileLog), StdoutPath: o.file(FileOut),
	}
	return &opsJob{options: p, out: newTail(p.StdoutPath), log: newLogReader(p.LogPath)}, nil
}

func (j *opsJob) process() engine.ProcessOptions { return j.options }

func (j *opsJob) beside(context.Context, *engine.Process) {}

func (j *opsJob) proof() (int64, bool) {
	j.log.look()
	j.out.lines(j.line)
	return max(j.passed, j.summed), true
}

var (
	reOpResult = lazyregexp.New(`^\s+(\w+\(.*\)): (.*?)\s*(OK|FAIL)$`)
	reOpSum    = lazyregexp.New(`^\s+(\d+)/(\d+) tests passed$`)
	reColour   = lazyregexp.New("\x1b\\[[0-9;]*m")
)

// line reads "  ADD(type=f32,…): OK", "  ADD(…): [ADD] NaN at index 3 (…) FAIL" and "  156/156 tests passed". An
// operation that the device does not know says "not supported", which is neither.
func (j *opsJob) line(line string) {
	line = reColour().ReplaceAllString(line, "")
	if m := reOpSum().FindStringSubmatch(line); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 32); err == nil {
			j.summed += n
		}
		return
	}
	m := reOpResult().FindStringSubmatch(line)
	switch {
	case m == nil:
	case m[3] == "OK":
		j.passed++
	default:
		j.failed.add("FAIL "+cut(m[1]), m[2])
	}
}

func (j *opsJob) verdict(exit string) (string, []string) {
	findings := append(j.failed.list(), j.log.finish()...)
	switch {
	case exit == ExitOK && j.summed == 0:
		exit = "no test was made"
		findings = append(findings, "test-backend-ops made no test: it skips the CPU unless it is given -b CPU")
	case exit != ExitOK && exit != ExitStopped:
		findings = append(findings, "test-backend-ops ended: "+exit)
	}
	return exit, findings
}
