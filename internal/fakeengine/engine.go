package fakeengine

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say what an engine is like. The zero value of a field means the
// default named here.
type Options struct {
	Slots    int // default 1
	Ctx      int // default 4096
	Unified  bool
	Fault    string        // KIND[@K]; default none
	Format   string        // of the log; default Formats()[0]
	PerToken time.Duration // default 200µs
	Seed     uint64
	Log      io.Writer // default: none
	Exit     func(int) // ends the process, or what stands for it; it does not return
}

// An Engine is a fake llama-server.
type Engine struct {
	o     Options
	fault fault
	log   *logger

	mu          sync.Mutex
	free        *sync.Cond
	slots       []*slot
	completions int
	tasks       int
	turn        int             // counts releases
	known       map[string]bool // prompts that came before
	held        [][]byte        // what a ramp has taken
}

// New makes an engine that has not started.
func New(o Options) (*Engine, error) {
	bad, err := parseFault(o.Fault)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("read %s=%s: no format of that name; there are %s", LogVariable, o.Format, strings.Join(Formats(), ", "))
	}
	if o.PerToken == 0 {
		o.PerToken = 200 * time.Microsecond
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Slots, o.Ctx = max(1, o.Slots), max(1, o.Ctx)
	if bad.kind == "one-slot" {
		o.Slots = 1
	}
	e := &Engine{o: o, fault: bad, log: &logger{w: o.Log, start: time.Now(), format: o.Format}, known: map[string]bool{}}
	e.free = sync.NewCond(&e.mu)
	for id := range o.Slots {
		e.slots = append(e.slots, &slot{id: id, task: -1})
	}
	return e, nil
}

// Start writes what the log says of loading the model. It is false if the
// process ends instead.
func (e *Engine) Start() bool {
	backend, offloaded := true, 37
	switch e.fault.kind {
	case "start-exit":
		return false
	case "start-oom":
		e.log.line('E', "ggml_gallocr_reserve_n_impl: failed to allocate HRX0 buffer of size 17179869184")
		return false
	case "start-hsa-oom":
		e.log.line('E', "hrx_allocator_allocate_buffer: HSA_STATUS_ERROR_OUT_OF_RESOURCES: allocation of 17179869184 bytes")
		return false
	case "cpu-only":
		backend = false
	case "partial":
		offloaded = 7
	}
	if backend {
		e.log.line('I', "load_backend: loaded HRX backend from /opt/engine/libggml-hrx.so")
		e.log.line('I', "llama_model_load_from_file_impl: using device HRX0 (Fake Graphics) (0000:c4:00.0) - 98304 MiB free")
		e.log.line('I', "load_tensors: offloaded %d/37 layers to GPU", offloaded)
	} else {
		e.log.line('E', "load_backend: failed to load /opt/engine/libggml-hrx.so: libamdhip64.so.7: cannot open shared object file")
		e.log.line('I', "load_backend: loaded CPU backend from /opt/engine/libggml-cpu-haswell.so")
	}
	e.log.line('I', "srv    load_model: initializing, n_slots = %d, n_ctx_slot = %d, kv_unified = '%t'", len(e.slots), e.o.Ctx, e.o.Unified)
	return true
}

// MiB is the memory that faults have taken so far.
func (e *Engine) MiB() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, b := range e.held {
		n += len(b)
	}
	return float64(n) / (1 << 20)
}

// Handler serves llama-server's paths.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", e.health)
	mux.HandleFunc("GET /slots", e.getSlots)
	mux.HandleFunc("GET /props", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"total_slots": len(e.slots), "build_info": "fake"})
	})
	mux.HandleFunc("POST /tokenize", e.tokenize)
	for path := range dialects() {
		mux.HandleFunc("POST "+path, e.complete)
	}
	return mux
}

func (e *Engine) health(w http.ResponseWriter, _ *http.Request) {
	if e.fault.kind == "start-hang" {
		reply(w, http.StatusServiceUnavailable, serverError(503, "Loading model", "unavailable_error"))
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

// tokenize counts one token a byte.
func (e *Engine) tokenize(w http.ResponseWriter, r *http.Request) {
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
