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

	"github.com/1bit-systems/pkg/engine"
)

// serve runs the fake in this process and returns a client and its log.
func serve(t *testing.T, kind string) (*engine.Client, *safeBuffer) {
	t.Helper()
	bad, err := parseFault(kind)
	if err != nil {
		t.Fatal(err)
	}
	log := &safeBuffer{}
	s := newServer(flags{slots: 4, ctx: 8192, unified: true}, bad, 100*time.Microsecond,
		&logger{w: log, start: time.Now()}, func(int) { runtime.Goexit() })
	web := httptest.NewServer(s.handler())
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

func (s *safeBuffer) events() map[engine.LogKind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := map[engine.LogKind]int{}
	for line := range strings.Lines(s.b.String()) {
		if ev, ok := engine.ParseLogLine(line); ok {
			kinds[ev.Kind]++
		}
	}
	return kinds
}

// Every fault shows in the answer as the engine package reads it, or in the log.
func TestFaults(t *testing.T) {
	face := map[string]string{
		"": "", "guard-v1": "", "guard-v2": "", "device": "", "replacement": "", "utf8-cut": "", "leak": "", "differ": "",
		"null": engine.FaceNaN, "no-probs": engine.FaceNotObserved, "utf8": engine.FaceUTF8, "json": engine.FaceJSON,
		"format": engine.FaceFormat, "status": engine.FaceStatus, "context": engine.FaceContext,
		"hang": "transport", "stall": "transport", "reset": "transport", "abort": "transport", "abort-lost": "transport", "crash": "transport",
	}
	inLog := map[string]engine.LogKind{
		"guard-v1": engine.LogNaN, "guard-v2": engine.LogNaN, "abort": engine.LogNaN, "abort-lost": engine.LogAbort,
		"context": engine.LogContext, "device": engine.LogDevice,
	}
	for _, kind := range append(Faults(), "") {
		if strings.HasPrefix(kind, "start-") || kind == "one-slot" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			want, known := face[kind]
			if !known {
				t.Fatal("no expectation")
			}
			c, log := serve(t, strings.TrimPrefix(kind+"@2", "@2"))
			got := ""
			for i := range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				if kind == "hang" || kind == "stall" {
					ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
				}
				a, err := c.Complete(ctx, engine.CompletionRequest{Prompt: fmt.Sprint(i, " and something to go on with"), NPredict: 8, NProbs: 1})
				cancel()
				if err != nil {
					got = "transport"
				} else if f := a.Faults(); len(f) > 0 {
					got = f[0].Face
				}
				if i == 0 && got != "" {
					t.Fatalf("the request before it has %s", got)
				}
			}
			if got != want {
				t.Errorf("face %q, want %q", got, want)
			}
			if k := inLog[kind]; k != "" && log.events()[k] == 0 {
				t.Errorf("no %s line in the log", k)
			}
		})
	}
}

func TestAnswersDependOnThePromptAlone(t *testing.T) {
	c, log := serve(t, "")
	if err := engine.Probe(t.Context(), c); err != nil {
		t.Error(err)
	}
	if ev := log.events(); ev[engine.LogSelected] != 2 || ev[engine.LogLaunch] != 2 || ev[engine.LogRelease] != 2 {
		t.Errorf("log events %v", ev)
	}
	c, _ = serve(t, "differ@2")
	if err := engine.Probe(t.Context(), c); err == nil {
		t.Error("answers that differ are not seen")
	}
	n, err := c.Tokenize(t.Context(), "four")
	if n != 4 || err != nil {
		t.Errorf("%d tokens, %v", n, err)
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
	if _, err := parseFault("nonsense"); err == nil {
		t.Error("an unknown fault is no error")
	}
}
