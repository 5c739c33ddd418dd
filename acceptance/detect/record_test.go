package detect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/fakeengine"
)

// A life of the fake engine: so many completions by phase. Faults that shall not meet a sentinel happen in the second
// phase, those of a quiet server at the very end.
const (
	inLoad = 12 // 4 quiet ones before, 16 unique ones
	atEnd  = 34 // 12 more with sentinels among them, and a quiet pair
	tau    = 0.2
	tokenN = 32
)

// sent is what Set.Sent is told.
type sent struct {
	id    int
	nonce string
}

// A recorder drives one life of the fake engine and writes down all that happened, so that any set of faces can look at
// it afterwards.
type recorder struct {
	t      *testing.T
	client *engine.Client
	stream bool
	log    lockedBuffer
	fake   atomic.Pointer[fakeengine.Engine]
	gone   chan int // exit code

	deadline time.Duration // of a request; a healthy one takes some 10 ms
	tail     string        // of unique prompts
	alone    bool          // one slot works and no other
	patience time.Duration // for a process that is to end after the last answer

	mu       sync.Mutex
	happened []any
	memory   Samples
	next     int // id of the next request
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (r *recorder) add(v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.happened = append(r.happened, v)
}

// record lives one life and returns what happened.
func record(t *testing.T, s scenario) []any {
	r := &recorder{t: t, stream: s.stream, gone: make(chan int, 1), deadline: 20 * time.Second}
	switch kind, _, _ := strings.Cut(s.fault, "@"); kind {
	case "hang", "stall":
		r.deadline = 600 * time.Millisecond
	case "one-slot", "slot-3":
		r.alone = true
	}
	if strings.HasSuffix(s.fault, fmt.Sprint("@", atEnd)) && !strings.HasPrefix(s.fault, "differ") {
		r.patience = 10 * time.Second
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.fake.Load().Handler().ServeHTTP(w, q) }))
	start := func(fault string) bool {
		fake, err := fakeengine.New(fakeengine.Options{
			Slots: 4, Ctx: 8192, Unified: true, Fault: fault, Format: s.format, PerToken: 300 * time.Microsecond, Log: &r.log,
			Exit: func(code int) {
				select {
				case r.gone <- code:
				default:
				}
				web.CloseClientConnections()
				runtime.Goexit()
			},
		})
		if err != nil {
			t.Error(err)
			return false
		}
		r.fake.Store(fake)
		return fake.Start()
	}
	if ready := start(s.fault); !ready {
		r.failedStart("server ended before it was ready: exit status 1")
		return r.happened
	}
	web.Start()
	defer web.Close()
	r.client = &engine.Client{BaseURL: web.URL, API: s.api}
	if state, err := r.client.Health(t.Context()); err != nil || state != engine.HealthOK {
		r.failedStart(fmt.Sprint("not ready in time: ", state, err))
		return r.happened
	}
	code, alive := r.life()
	if strings.HasPrefix(s.fault, "restart") && !alive {
		r.add(Relisten{Identity{PID: 100, Start: 7}, Identity{PID: 100, Start: 7}})
		start("")
		r.round(r.unique(4)...)
		r.add(Relisten{Identity{PID: 100, Start: 7}, Identity{PID: 101, Start: 9}})
		alive = true
	}
	if !alive {
		r.add(Exit{Status: engine.ExitStatus{Code: code}, OOMKilled: s.oom})
	}
	r.ending()
	for _, ev := range s.kernel {
		r.add(ev)
	}
	return r.happened
}

// life sends the requests of a life. It ends early if the process does.
func (r *recorder) life() (code int, alive bool) {
	sentinels := []string{"the sentinel of the first length", "the sentinel of the second length, which is longer"}
	references := make([]*engine.Answer, len(sentinels))
	for i, text := range sentinels {
		references[i] = r.ask(Sentinel, text)
		r.add(Pair{references[i], r.ask(Sentinel, text)})
	}
	for range 4 {
		if code, gone := r.round(r.unique(4)...); gone {
			return code, false
		}
	}
	for n := range 3 {
		of := n % len(sentinels)
		var under *engine.Answer
		r.crowded(func() { under = r.ask(Sentinel, sentinels[of]) })
		if under != nil {
			r.add(Comparison{references[of], under, tau})
		}
	}
	first := r.ask(Sentinel, sentinels[0])
	r.add(Pair{first, r.ask(Sentinel, sentinels[0])})
	select {
	case code := <-r.gone:
		return code, false
	case <-time.After(r.patience):
		return 0, true
	}
}

// round does things at once and tells whether the process ended.
func (r *recorder) round(things ...func()) (code int, gone bool) {
	var all sync.WaitGroup
	for _, do := range things {
		all.Go(do)
	}
	all.Wait()
	select {
	case code := <-r.gone:
		return code, true
	default:
		return 0, false
	}
}

// unique makes requests with a nonce of their own.
func (r *recorder) unique(n int) []func() {
	var list []func()
	for range n {
		list = append(list, func() { r.ask("", r.tail) })
	}
	return list
}

// crowded does something while the other three slots work. Their requests are given up afterwards, so that they tell
// nothing.
func (r *recorder) crowded(do func()) {
	if r.alone {
		do()
		return
	}
	ctx, giveUp := context.WithCancel(r.t.Context())
	var others sync.WaitGroup
	for n := range 3 {
		others.Go(func() {
			_, err := r.client.Complete(ctx, engine.CompletionRequest{Prompt: fmt.Sprint(n, " goes on and on"), NPredict: 1 << 20})
			if err == nil {
				r.t.Error("an endless answer has ended")
			}
		})
	}
	r.untilBusy(3)
	do()
	giveUp()
	others.Wait()
	r.untilBusy(0)
}

// untilBusy waits until so many slots work.
func (r *recorder) untilBusy(want int) {
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		slots, err := r.client.Slots(r.t.Context())
		n := 0
		for _, s := range slots {
			if s.Processing {
				n++
			}
		}
		if err != nil || len(slots) < 4 || n == want {
			return
		}
	}
	r.t.Errorf("%d slots never worked at once", want)
}

// ask sends one request and records how it went. nil: no answer came.
func (r *recorder) ask(kind, prompt string) *engine.Answer {
	r.mu.Lock()
	x := &Exchange{ID: r.next, Kind: kind, NPredict: tokenN, ProbsAsked: true}
	r.next++
	if kind == "" {
		nonce := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(x.ID), byte(x.ID >> 8)}))[:16]
		prompt = nonce + " and then something more" + prompt
		r.happened = append(r.happened, sent{x.ID, nonce})
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.t.Context(), r.deadline)
	defer cancel()
	x.Answer, x.Err = r.client.Complete(ctx, engine.CompletionRequest{
		Prompt: prompt, NPredict: tokenN, NProbs: 2, ReturnTokens: true, Stream: r.stream,
	})
	x.Deadline = errors.Is(x.Err, context.DeadlineExceeded)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.happened = append(r.happened, x)
	if fake := r.fake.Load(); fake != nil {
		r.memory = append(r.memory, Sample{Requests: len(r.memory) + 1, MiB: 300 + fake.MiB()})
	}
	if x.Err != nil {
		return nil
	}
	return x.Answer
}

// lines gives the events of the log.
func (r *recorder) lines() []engine.LogEvent {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	var list []engine.LogEvent
	for line := range strings.Lines(r.log.b.String()) {
		if ev, ok := engine.ParseLogLine(line); ok {
			list = append(list, ev)
		}
	}
	return list
}

func (r *recorder) failedStart(detail string) {
	f := FailedStart{Detail: detail}
	for _, ev := range r.lines() {
		r.add(ev)
		if ev.Kind == engine.LogAlloc {
			f.Cause, f.Log = "load-oom", ev.Detail
		}
	}
	r.add(f)
}

// ending adds what is told of the whole life.
func (r *recorder) ending() {
	var placed engine.Placement
	for _, ev := range r.lines() {
		r.add(ev)
		placed.Add(ev)
	}
	r.add(Placement{WantDevice: "HRX0", WantLayers: "all", Devices: placed.Devices, Offloaded: placed.Offloaded, Layers: placed.Layers})
	r.add(r.memory)
}
