package fakeengine

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

// serve runs the fake in this process and returns a client and its log.
func serve(t *testing.T, o Options) (*engine.Client, *safeBuffer) {
	t.Helper()
	log := &safeBuffer{}
	o.Slots, o.Ctx, o.Unified, o.PerToken, o.Log = 4, 8192, true, 100*time.Microsecond, log
	o.Exit = func(int) { runtime.Goexit() }
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Start() {
		t.Fatal("it does not start")
	}
	web := httptest.NewServer(e.Handler())
	t.Cleanup(web.Close)
	return &engine.Client{BaseURL: web.URL}, log
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) events() []engine.LogEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []engine.LogEvent
	for line := range strings.Lines(s.b.String()) {
		if ev, ok := engine.ParseLogLine(line); ok {
			list = append(list, ev)
		}
	}
	return list
}

func (s *safeBuffer) kinds() map[engine.LogKind]int {
	kinds := map[engine.LogKind]int{}
	for _, ev := range s.events() {
		kinds[ev.Kind]++
	}
	return kinds
}

// Faults that show in the answer show on every path, whole and as a stream.
func TestFaultsOfAnswers(t *testing.T) {
	tests := map[string]string{
		"": "", "replacement": "", "utf8-cut": "", "leak": "", "question": "", "token-zero": "", "empty-text": "", "no-deltas": "",
		"null": engine.FaceNaN, "guard-null": engine.FaceNaN, "no-probs": engine.FaceNotObserved, "utf8": engine.FaceUTF8,
		"json": engine.FaceJSON, "format": engine.FaceFormat, "status": engine.FaceStatus, "in-band": engine.FaceStatus,
		"unavailable": engine.FaceStatus, "loading": engine.FaceLoading, "context": engine.FaceContext,
		"overcommit": engine.FaceContext, "exceed-context": engine.FaceContext,
		"hang": "no answer", "stall": "no answer", "reset": "no answer", "cut": "no answer", "abort": "no answer", "crash": "no answer",
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, api := range []string{engine.APICompletion, engine.APICompletions, engine.APIChat} {
				for _, stream := range []bool{false, true} {
					c, _ := serve(t, Options{Fault: strings.TrimPrefix(kind+"@2", "@2")})
					c.API = api
					got := ""
					for i := range 2 {
						patience := time.Minute
						if i == 1 && (kind == "hang" || kind == "stall") {
							patience = 100 * time.Millisecond
						}
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						a, err := c.Complete(ctx, engine.CompletionRequest{
							Prompt: fmt.Sprint(i, " and something to go on with"), NPredict: 8, NProbs: 2, Stream: stream,
						})
						cancel()
						if err != nil {
							got = "no answer"
						} else if f := a.Faults(); len(f) > 0 {
							got = f[0].Face
						}
						if i == 0 && got != "" {
							t.Fatalf("%s, stream %v: the request before it has %s", api, stream, got)
						}
					}
					if got != want {
						t.Errorf("%s, stream %v: %q, want %q", api, stream, got, want)
					}
				}
			}
		})
	}
}

// What an answer says does not depend on the path it came by.
func TestDialectsSayTheSame(t *testing.T) {
	c, _ := serve(t, Options{})
	said := map[string]bool{}
	for _, api := range []string{engine.APICompletion, engine.APICompletions, engine.APIChat} {
		for _, stream := range []bool{false, true} {
			c.API = api
			a, err := c.Complete(t.Context(), engine.CompletionRequest{Prompt: "one and the same", NPredict: 12, NProbs: 2, Stream: stream})
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Tokens) != 12 || a.TokensPredicted != 12 || a.Tokens[even].TopGap == nil || !(*a.Tokens[even].TopGap < 0.02) || !a.StoppedAtLimit {
				t.Errorf("%s, stream %v: %d tokens, %d predicted, gap %v", api, stream, len(a.Tokens), a.TokensPredicted, a.Tokens[even].TopGap)
			}
			said[a.Content] = true
		}
	}
	if len(said) != 1 {
		t.Errorf("%d texts: %v", len(said), said)
	}
}

func TestFaultsInTheLog(t *testing.T) {
	for kind, want := range map[string]engine.LogKind{
		"guard-v1": engine.LogNaN, "guard-v2": engine.LogNaN, "guard-null": engine.LogNaN, "abort": engine.LogNaN,
		"abort-lost": engine.LogAbort, "context": engine.LogContext, "overcommit": engine.LogContext, "hsa": engine.LogDevice,
	} {
		for _, format := range Formats() {
			c, log := serve(t, Options{Fault: kind + "@1", Format: format})
			c.Complete(t.Context(), engine.CompletionRequest{Prompt: "anything", NPredict: 4})
			if k := log.kinds(); k[want] == 0 || k[engine.LogStartup] != 1 || k[engine.LogSelected] != 1 || k[engine.LogLaunch] != 1 {
				t.Errorf("%s, format %q: events %v", kind, format, k)
			}
			router := format == "router"
			for _, ev := range log.events() {
				if (ev.Router != 0) != router && ev.Kind != engine.LogAbort {
					t.Errorf("%s, format %q: %+v", kind, format, ev)
				}
			}
		}
	}
}

func TestAnswersDependOnPromptAndSeedAlone(t *testing.T) {
	c, log := serve(t, Options{})
	if err := engine.Probe(t.Context(), c); err != nil {
		t.Error(err)
	}
	if ev := log.kinds(); ev[engine.LogSelected] != 2 || ev[engine.LogLaunch] != 2 || ev[engine.LogRelease] != 2 {
		t.Errorf("log events %v", ev)
	}
	var said []string
	for _, seed := range []uint64{0, 0, 1} {
		c, _ := serve(t, Options{Seed: seed})
		a, err := c.Complete(t.Context(), engine.CompletionRequest{Prompt: "tell", NPredict: 40})
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, a.Content)
	}
	if said[0] != said[1] || said[0] == said[2] {
		t.Errorf("%q", said)
	}
	c, _ = serve(t, Options{Fault: "differ@2"})
	if err := engine.Probe(t.Context(), c); err == nil {
		t.Error("answers that differ are not seen")
	}
	n, err := c.Tokenize(t.Context(), "four")
	if n != 4 || err != nil {
		t.Errorf("%d tokens, %v", n, err)
	}
}

func TestSlots(t *testing.T) {
	for kind, want := range map[string][]int{"": {0, 1, 2, 3, 0}, "slot-3": {3, 3, 3, 3, 3}, "one-slot": {0, 0, 0, 0, 0}} {
		c, log := serve(t, Options{Fault: kind})
		var got []int
		for i := range want {
			a, err := c.Complete(t.Context(), engine.CompletionRequest{Prompt: fmt.Sprintf("%d is how it begins", i), NPredict: 4})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.SlotID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		for _, ev := range log.events() {
			if ev.Kind == engine.LogSelected && ev.How != engine.SelectedLRU {
				t.Errorf("%s: %+v", kind, ev)
			}
		}
	}
	c, log := serve(t, Options{Fault: "lcp"})
	for i := range 8 {
		c.Complete(t.Context(), engine.CompletionRequest{Prompt: fmt.Sprintf("%d is how it begins", i), NPredict: 4})
	}
	n := 0
	for _, ev := range log.events() {
		if ev.How == engine.SelectedLCP {
			n++
		}
	}
	if n != 7 {
		t.Errorf("%d of 8 chosen by the beginning", n)
	}
}

func TestMemory(t *testing.T) {
	for kind, want := range map[string]float64{"ramp@3": 48, "plateau@3": 24, "": 0} {
		e, err := New(Options{Fault: kind})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 6 {
			e.grow(n + 1)
		}
		if got := e.MiB(); got != want {
			t.Errorf("%s: %g MiB, want %g", kind, got, want)
		}
	}
}

func TestMainReadsFlags(t *testing.T) {
	f := parseFlags(strings.Fields("-m x.gguf --host 127.0.0.1 --port 81 --parallel 4 -kvu -c 8192 --unknown -t 1"))
	if want := (flags{host: "127.0.0.1", port: 81, slots: 4, ctx: 8192, unified: true}); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	var out bytes.Buffer
	if code := Main([]string{"--version"}, os.Getenv, &out, os.Exit); code != 0 || strings.TrimSpace(out.String()) != VersionLine {
		t.Errorf("--version: %d, %q", code, out.String())
	}
	for _, bad := range []map[string]string{
		{FaultVariable: "nonsense"}, {FaultVariable: "null@0"}, {LogVariable: "nonsense"}, {TokenVariable: "soon"}, {SeedVariable: "-1"},
	} {
		if code := Main(nil, func(k string) string { return bad[k] }, &out, os.Exit); code != 2 {
			t.Errorf("%v: exit %d", bad, code)
		}
	}
}
