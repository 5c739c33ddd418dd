// Package fakeengine is a llama-server for fault injection: it speaks the HTTP
// interface and the log format of the real one and goes wrong on request. What
// the real engine can be made to do is tested on the real engine; this one is
// for what it cannot: guard lines, aborts, invalid UTF-8, leaks, hangs.
//
// It takes llama-server's flags and ignores those it does not know. Answers are
// a function of the prompt alone. One environment variable switches a fault on:
//
//	FAKE_ENGINE_FAULT=KIND[@K]    the K-th completion goes wrong, by default the 3rd
//	FAKE_ENGINE_TOKEN=DURATION    time a token takes, by default 200µs
//
// Main is the whole program, so that a test binary can be one, too.
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
)

// VersionLine is what --version prints.
const VersionLine = "version: 1 (fake)"

// flags of llama-server that are understood.
type flags struct {
	host    string
	port    int
	slots   int
	ctx     int
	unified bool
	version bool
}

func parseFlags(args []string) flags {
	f := flags{host: "127.0.0.1", port: 8080, slots: 1, ctx: 4096}
	for i := 0; i < len(args); i++ {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		number := func(to *int) {
			if n, err := strconv.Atoi(next); err == nil {
				*to = n
				i++
			}
		}
		switch args[i] {
		case "--version":
			f.version = true
		case "--host":
			f.host = next
			i++
		case "--port":
			number(&f.port)
		case "--parallel", "-np":
			number(&f.slots)
		case "--ctx-size", "-c":
			number(&f.ctx)
		case "--kv-unified", "-kvu":
			f.unified = true
		}
	}
	return f
}

// Main runs the program and returns its exit code. exit is called from within
// a request when a fault says that the process ends.
func Main(args []string, getenv func(string) string, stderr io.Writer, exit func(int)) int {
	f := parseFlags(args)
	if f.version {
		fmt.Fprintln(stderr, VersionLine)
		return 0
	}
	fault, err := parseFault(getenv(FaultVariable))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	perToken := 200 * time.Microsecond
	if v := getenv(TokenVariable); v != "" {
		if perToken, err = time.ParseDuration(v); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	s := newServer(f, fault, perToken, &logger{w: stderr, start: time.Now()}, exit)
	switch fault.kind {
	case "start-exit":
		return 1
	case "start-oom":
		s.log.line('E', "ggml_gallocr_reserve_n_impl: failed to allocate HRX0 buffer of size 17179869184")
		return 1
	}
	l, err := net.Listen("tcp", net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		s.log.line('E', "srv         start: couldn't bind HTTP server socket, hostname: %s, port: %d", f.host, f.port)
		return 1
	}
	slots := f.slots
	if fault.kind == "one-slot" {
		slots = 1
	}
	s.log.line('I', "srv    load_model: initializing, n_slots = %d, n_ctx_slot = %d, kv_unified = '%t'", slots, f.ctx, f.unified)
	s.log.line('I', "srv  llama_server: listening on http://%s", l.Addr())
	web := &http.Server{Handler: s.handler(), BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- web.Serve(l) }()
	select {
	case <-ctx.Done():
	case err := <-done:
		fmt.Fprintln(stderr, err)
		return 1
	}
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if err := web.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// A fault is what goes wrong and at which completion, counted from 1.
type fault struct {
	kind string
	at   int
}

func parseFault(s string) (fault, error) {
	kind, at, given := strings.Cut(s, "@")
	f := fault{kind: kind, at: 3}
	if given {
		n, err := strconv.Atoi(at)
		if err != nil || n < 1 {
			return f, fmt.Errorf("read %s=%s: no number after the @", FaultVariable, s)
		}
		f.at = n
	}
	for _, known := range Faults() {
		if kind == known {
			return f, nil
		}
	}
	if kind != "" {
		return f, fmt.Errorf("read %s=%s: no fault of that name; there are %s", FaultVariable, s, strings.Join(Faults(), ", "))
	}
	return f, nil
}

// Faults lists what can go wrong.
func Faults() []string {
	return []string{
		"guard-v1", "guard-v2", // a guard line in the log, and on it goes
		"abort",      // guard line, abort text, exit 134
		"abort-lost", // abort text alone, exit 134
		"null",       // a null log-probability
		"no-probs",   // log-probabilities left out
		"utf8",       // an invalid byte in the middle
		"utf8-cut",   // a character cut at the limit: legal
		"replacement", "json", "format", "status", "context",
		"leak",   // the answer carries another request's nonce
		"differ", // identical requests get different answers
		"hang",   // never answers
		"stall",  // half an answer, then nothing
		"reset",  // the connection is closed without an answer
		"crash",  // exit 139
		"device", // the GPU runtime reports an error in the log
		"one-slot",
		"start-exit", "start-oom", "start-hang",
	}
}
