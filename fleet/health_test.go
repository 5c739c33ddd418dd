package fleet

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/1bit-systems/pkg/engine"
)

// Of several ports the one counts that answers as a server does; one that answers otherwise, or still loads, does
// not hide it.
func TestAskSeveralPorts(t *testing.T) {
	h, self := &Host{}, []procInfo{{pid: os.Getpid()}}
	if _, _, err := h.ask(t.Context(), self); !errors.Is(err, errNotListening) {
		t.Fatalf("nothing listens: %v", err)
	}
	serve := func(status int, body string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(server.Close)
	}
	serve(http.StatusNotFound, "a page")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, _, err := h.ask(t.Context(), self); err == nil || errors.Is(err, errNotListening) {
		t.Errorf("no port of a server: %v", err)
	}
	serve(http.StatusServiceUnavailable, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`)
	if _, state, err := h.ask(t.Context(), self); err != nil || state != engine.HealthLoading {
		t.Errorf("one loads: %v, %v", state, err)
	}
	serve(http.StatusOK, `{"status":"ok"}`)
	if c, state, err := h.ask(t.Context(), self); err != nil || state != engine.HealthOK || c == nil {
		t.Errorf("one is ready: %v, %v", state, err)
	}
}
