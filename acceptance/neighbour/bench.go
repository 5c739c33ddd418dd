package neighbour

import (
	"context"
	"encoding/json"

	"github.com/1bit-systems/pkg/engine"
)

// benchJob is a run of llama-bench. It prints one JSON object a test when all repetitions of the test are done; their
// tokens are the proof. It never looks at what it computes: a model that gives NaN is as fast as any.
type benchJob struct {
	options engine.ProcessOptions
	rows    *tail
	log     *logReader
	tokens  int64
}

func beginBench(_ context.Context, o *Options, _ int) (job, error) {
	p := engine.ProcessOptions{
		Program: o.Programs["llama-bench"],
		Args:    append([]string{"-m", o.Model, "-o", "jsonl"}, o.Args...),
		Env:     o.Env, LogPath: o.file(FileLog), StdoutPath: o.file(FileRows),
	}
	return &benchJob{options: p, rows: newTail(p.StdoutPath), log: newLogReader(p.LogPath)}, nil
}

func (j *benchJob) process() engine.ProcessOptions { return j.options }

func (j *benchJob) beside(context.Context, *engine.Process) {}

func (j *benchJob) proof() (int64, bool) {
	j.log.look()
	j.rows.lines(func(line string) { j.tokens += benchTokens(line) })
	return j.tokens, true
}

func (j *benchJob) verdict(exit string) (string, []string) {
	findings := j.log.finish()
	if exit != ExitOK && exit != ExitStopped {
		findings = append(findings, "llama-bench ended: "+exit)
	}
	return exit, findings
}

// benchTokens counts the tokens that a row of llama-bench's `-o jsonl` stands for: prompt and answer, once for every
// time that it measured. Another line stands for none.
func benchTokens(line string) int64 {
	var row struct {
		Prompt  int64             `json:"n_prompt"`
		Gen     int64             `json:"n_gen"`
		Samples []json.RawMessage `json:"samples_ns"`
	}
	const most = 1 << 32
	if json.Unmarshal([]byte(line), &row) != nil ||
		row.Prompt < 0 || row.Gen < 0 || row.Prompt > most || row.Gen > most {
		return 0
	}
	return (row.Prompt + row.Gen) * int64(len(row.Samples))
}
