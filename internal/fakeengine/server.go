package fakeengine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// A logger writes lines as llama-server does: time since the start, level, text.
type logger struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func (l *logger) line(level byte, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := time.Since(l.start)
	fmt.Fprintf(l.w, "%d.%02d.%03d.%03d %c %s\n", int(t.Minutes()), int(t.Seconds())%60,
		t.Milliseconds()%1000, t.Microseconds()%1000, level, fmt.Sprintf(format, args...))
}

// bare writes a line without prefix, as an abort does.
func (l *logger) bare(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, text)
}

type slot struct {
	id     int
	busy   bool
	used   time.Time // zero: never
	prompt string
	task   int
}

type server struct {
	flags    flags
	fault    fault
	perToken time.Duration
	log      *logger
	exit     func(int)

	mu          sync.Mutex
	free        *sync.Cond
	slots       []*slot
	completions int
	tasks       int
	nonces      []string // the beginnings of earlier prompts
}

func newServer(f flags, bad fault, perToken time.Duration, log *logger, exit func(int)) *server {
	s := &server{flags: f, fault: bad, perToken: perToken, log: log, exit: exit}
	s.free = sync.NewCond(&s.mu)
	for id := range f.slots {
		s.slots = append(s.slots, &slot{id: id, task: -1})
	}
	return s
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /slots", s.getSlots)
	mux.HandleFunc("GET /props", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"total_slots": len(s.slots), "build_info": "fake"})
	})
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /completion", s.complete)
	return mux
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	if s.fault.kind == "start-hang" {
		reply(w, http.StatusServiceUnavailable, serverError(503, "Loading model", "unavailable_error"))
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *server) getSlots(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := []map[string]any{}
	for _, sl := range s.slots {
		row := map[string]any{"id": sl.id, "n_ctx": s.flags.ctx, "is_processing": sl.busy}
		if sl.task >= 0 {
			row["id_task"] = sl.task
		}
		rows = append(rows, row)
	}
	reply(w, http.StatusOK, rows)
}

// tokenize counts one token a byte.
func (s *server) tokenize(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Content string `json:"content"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		reply(w, http.StatusBadRequest, serverError(400, err.Error(), "invalid_request_error"))
		return
	}
	ids := make([]int, len(in.Content))
	for i := range ids {
		ids[i] = int(in.Content[i])
	}
	reply(w, http.StatusOK, map[string]any{"tokens": ids})
}

type completion struct {
	Prompt   string `json:"prompt"`
	NPredict int    `json:"n_predict"`
	NProbs   int    `json:"n_probs"`
}

func (s *server) complete(w http.ResponseWriter, r *http.Request) {
	var in completion
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		reply(w, http.StatusBadRequest, serverError(400, err.Error(), "invalid_request_error"))
		return
	}
	sl, number, task := s.take(in.Prompt)
	defer s.release(sl, task, len(in.Prompt)+in.NPredict)
	bad := ""
	if number == s.fault.at || s.fault.kind == "differ" && number >= s.fault.at {
		bad = s.fault.kind
	}
	if !wait(r.Context(), time.Duration(in.NPredict+1)*s.perToken) {
		return
	}
	s.answer(w, r, in, sl.id, number, bad)
}

// take waits for a slot and chooses it as llama-server does: the one whose last
// prompt begins alike, else the least recently used.
func (s *server) take(prompt string) (*slot, int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *slot
	for best == nil {
		for _, sl := range s.slots {
			if !sl.busy && (best == nil || sl.used.Before(best.used)) {
				best = sl
			}
		}
		if best == nil {
			s.free.Wait()
		}
	}
	how, alike := "", 0.1
	for _, sl := range s.slots {
		if share := similarity(sl.prompt, prompt); !sl.busy && share > alike {
			best, alike = sl, share
			how = fmt.Sprintf("selected slot by LCP similarity, f_sim_best = %.3f (> 0.100 thold), f_keep = 0.500", share)
		}
	}
	if how == "" {
		last := int64(-1)
		if !best.used.IsZero() {
			last = best.used.Sub(s.log.start).Microseconds()
		}
		how = fmt.Sprintf("selected slot by LRU, n_tokens = %d, t_last = %d", len(best.prompt), last)
	}
	s.tasks++
	s.completions++
	best.busy, best.prompt, best.task = true, prompt, s.tasks
	s.log.line('I', "slot get_availabl: id %2d | task -1 | %s", best.id, how)
	s.log.line('I', "slot launch_slot_: id %2d | task %d | processing task, is_child = 0", best.id, s.tasks)
	s.nonces = append(s.nonces, prompt[:min(16, len(prompt))])
	return best, s.completions, s.tasks
}

func (s *server) release(sl *slot, task, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.line('I', "slot      release: id %2d | task %d | stop processing: n_tokens = %d, truncated = 0", sl.id, task, tokens)
	sl.busy, sl.used = false, time.Now()
	s.free.Broadcast()
}

// similarity is the share of the new prompt that the old one begins with.
func similarity(old, prompt string) float64 {
	n := 0
	for n < len(old) && n < len(prompt) && old[n] == prompt[n] {
		n++
	}
	return float64(n) / float64(max(1, len(prompt)))
}

// text derives n printable characters from the prompt.
func text(prompt string, salt, n int) string {
	out := make([]byte, 0, n+sha256.Size)
	for i := 0; len(out) < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", salt, i, prompt))
		for _, b := range sum {
			out = append(out, "abcdefghijklmnop qrstuvwxyz .,"[int(b)%30])
		}
	}
	return string(out[:n])
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}

func serverError(code int, message, kind string) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": message, "type": kind}}
}
