// Package fakeengine is a llama-server for fault injection: it speaks the HTTP
// interface and the log format of the real one and goes wrong on request. What
// the real engine can be made to do is tested on the real engine; this one is
// for what it cannot: guard lines, aborts, invalid UTF-8, leaks, hangs.
//
// It takes llama-server's flags and ignores those it does not know. Answers are
// a function of the prompt and the seed alone. Environment variables make it go
// wrong, and change how it looks:
//
//	FAKE_ENGINE_FAULT=KIND[@K]    the K-th completion goes wrong, by default the 3rd
//	FAKE_ENGINE_TOKEN=DURATION    time a token takes, by default 200µs
//	FAKE_ENGINE_LOG=FORMAT        look of the log: see Formats
//	FAKE_ENGINE_SEED=N            another model, so to say
//
// Main is the whole program, so that a test binary can be one, too. New makes
// an engine without a process, for a server in the test's own.
package fakeengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Environment variables.
const (
	FaultVariable = "FAKE_ENGINE_FAULT"
	TokenVariable = "FAKE_ENGINE_TOKEN"
	LogVariable   = "FAKE_ENGINE_LOG"
	SeedVariable  = "FAKE_ENGINE_SEED"
)

// VersionLine is what --version prints.
const VersionLine = "version: 1 (fake)"

// Main runs the program and returns its exit code. exit is called from within
// a request when a fault says that the process ends.
func Main(args []string, getenv func(string) string, stderr io.Writer, exit func(int)) int {
	f := parseFlags(args)
	if f.version {
		fmt.Fprintln(stderr, VersionLine)
		return 0
	}
	o, err := options(f, getenv)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	o.Log, o.Exit = stderr, exit
	e, err := New(o)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if e.fault.kind == "restart" && getenv(childVariable) == "" {
		return front(ctx, args, stderr)
	}
	return e.run(ctx, f)
}

func options(f flags, getenv func(string) string) (Options, error) {
	o := Options{Slots: f.slots, Ctx: f.ctx, Unified: f.unified, Fault: getenv(FaultVariable), Format: getenv(LogVariable)}
	var err error
	if v := getenv(TokenVariable); v != "" {
		if o.PerToken, err = time.ParseDuration(v); err != nil {
			return o, fmt.Errorf("read %s: %w", TokenVariable, err)
		}
	}
	if v := getenv(SeedVariable); v != "" {
		if o.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			return o, fmt.Errorf("read %s: %w", SeedVariable, err)
		}
	}
	if kind, _, _ := strings.Cut(o.Fault, "@"); kind == "restart" && getenv(childVariable) == "2" {
		o.Fault = "" // once is enough
	}
	return o, nil
}

// run starts, serves until it is told to stop, and returns the exit code.
func (e *Engine) run(ctx context.Context, f flags) int {
	if !e.Start() {
		return 1
	}
	l, err := net.Listen("tcp", net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		e.log.line('E', "srv         start: couldn't bind HTTP server socket, hostname: %s, port: %d", f.host, f.port)
		return 1
	}
	e.log.line('I', "srv  llama_server: listening on http://%s", l.Addr())
	web := &http.Server{Handler: e.Handler(), BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- web.Serve(l) }()
	select {
	case <-ctx.Done():
	case err := <-done:
		e.log.bare(err.Error())
		return 1
	}
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if err := web.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		e.log.bare(err.Error())
		return 1
	}
	return 0
}
