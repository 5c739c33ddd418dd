package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// onlyVerdict is the name of what is measured on a ledger.
const onlyVerdict = "verdict"

const (
	verdictRequests = 1_000_000
	verdictRounds   = 3
	verdictMax      = 5 // seconds
)

// verdict measures how long a verdict on a million requests takes, the chain of hashes and all. It reads every byte of
// the ledger, so it is compared with a program that only hashes the same file.
func (b *bench) verdict() (err error) {
	dir, err := os.MkdirTemp("", "bench-verdict-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := writeRun(dir, verdictRequests); err != nil {
		return err
	}
	ledger := filepath.Join(dir, "ledger.jsonl")
	judge := func(int) (run, error) {
		return b.program(filepath.Join(dir, "home"), "accept", "verdict", dir, "-o", "json")
	}
	sum := func(int) (run, error) { return timed(b.ctx, "sha256sum", ledger) }
	ours, peer, memory, err := inTurn(verdictRounds, judge, sum)
	if err != nil {
		return err
	}
	fmt.Printf("bench verdict_million %.2f s target <=%d %s  [%d requests, %.0f MB of ledger, median of %d]\n",
		ours, verdictMax, met(ours, verdictMax), verdictRequests, fileSize(ledger), verdictRounds)
	compared("verdict_vs_sha256sum", ours, peer, "s", "sha256sum ledger.jsonl")
	memoryPeak("verdict_memory", memory)
	return nil
}

const benchPlan = `name: bench
model: model.gguf
load: {requests: %d}
gates: {min_launches_per_slot: 1}
p0: 0.001
`

// writeRun writes the evidence of a clean run of one life, as a runner would leave it.
func writeRun(dir string, requests int) (err error) {
	plan, resolved := fmt.Appendf(nil, benchPlan, requests), []byte("{}\n")
	for name, b := range map[string][]byte{"plan.yaml": plan, "plan.json": resolved} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &chainWriter{out: bufio.NewWriterSize(f, 1<<20), at: time.Date(2026, 11, 1, 12, 0, 0, 123_456_000, time.UTC)}
	w.add("open", `{"schema":2,"plan_file_sha256":"%s","plan_sha256":"%s","package":"bench","package_digest":"sha256:0"}`, sum(plan), sum(resolved))
	w.add("start", `{"arm":1,"planned":0,"name":"candidate","life":1,"role":"candidate"}`)
	w.add("startup", `{"tries":1,"port":8080,"pid":1,"took_ms":30}`)
	w.add("load", `{"gtt_used_gib":null,"mem_available_gib":60,"kernel_log":""}`)
	for id := range requests {
		start := 28_137 * int64(id)
		w.add("request", `{"id":%d,"worker":%d,"nonce":"%016x","prompt_target":175,"prompt_tokens":173,"n_predict":32,"probs_asked":true,`+
			`"intended_us":%d,"start_us":%d,"end_us":%d,"outcome":"answered","status":200,"slot":%d,"predicted":32,"observed":32,`+
			`"bytes":6812,"sha256":"%s","number":%d}`,
			id, id%4, uint64(id)*0x9e3779b97f4a7c15, start, start+3, start+112_000, id%4, w.head, id)
	}
	quarter := requests / 4
	w.add("end", `{"why":"done","load_from_us":0,"load_us":%d,"shape":{"slots":4,"kv_unified":true,"launches":{"0":%d,"1":%d,"2":%d,"3":%d},`+
		`"lru":%d,"never_used":4,"first_slots":[0,1,2,3],"busy_us":100,"all_slots_busy_us":82}}`,
		28_137*int64(requests), quarter, quarter, quarter, quarter, requests)
	w.add("close", `{"count":%d,"head":"%s"}`, w.seq, w.head)
	return errors.Join(w.err, w.out.Flush())
}

// A chainWriter writes lines as they stand in a ledger: each with the sum of the one before and of itself.
type chainWriter struct {
	out  *bufio.Writer
	at   time.Time
	seq  int
	head string
	err  error
}

func (w *chainWriter) add(kind, format string, args ...any) {
	w.seq++
	w.at = w.at.Add(28_137 * time.Microsecond)
	line := fmt.Appendf(nil, `{"seq":%d,"at":"%s","kind":"%s","data":`, w.seq, w.at.Format(time.RFC3339Nano), kind)
	line = fmt.Appendf(line, format, args...)
	w.head = sum(append([]byte(w.head), line...))
	_, err := fmt.Fprintf(w.out, "%s,\"sum\":\"%s\"}\n", line, w.head)
	w.err = errors.Join(w.err, err)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
