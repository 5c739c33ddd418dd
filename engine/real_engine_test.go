package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
)

// serveReal starts the real llama-server with one of the test models.
func serveReal(t *testing.T, tree *realengine.Tree, model string) (*Server, *Client, string) {
	t.Helper()
	port, err := FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "server.log")
	s, err := StartServer(t.Context(), ServerOptions{
		Program: tree.Program("llama-server"), Env: pathEnv, LogPath: log,
		Args: []string{"-m", tree.Model(model), "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--parallel", "4", "-kvu", "-c", "8192", "-t", "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background(), 0); err != nil {
			t.Error(err)
		}
	})
	c := &Client{BaseURL: fmt.Sprintf("http://127.0.0.1:%d", port)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.WaitReady(ctx, c); err != nil {
		t.Fatal(err)
	}
	return s, c, log
}

func TestRealServer(t *testing.T) {
	tree := realengine.Require(t)
	s, c, log := serveReal(t, tree, "plain")
	if err := Probe(t.Context(), c); err != nil {
		t.Errorf("a good model: %v", err)
	}
	n, err := c.Tokenize(t.Context(), "four")
	if err != nil || n != 4 {
		t.Errorf("%d tokens, %v", n, err)
	}
	props, err := c.Props(t.Context())
	if err != nil || props.TotalSlots != 4 {
		t.Errorf("props %+v, %v", props, err)
	}
	slots, err := c.Slots(t.Context())
	if err != nil || len(slots) != 4 || slots[0].TaskID < 0 || slots[3].TaskID != -1 {
		t.Errorf("slots %+v, %v", slots, err)
	}
	a, err := c.Complete(t.Context(), CompletionRequest{Prompt: strings.Repeat("x ", 5000), NPredict: 4, NProbs: 1})
	if err != nil || len(a.Faults()) != 1 || a.Faults()[0].Face != FaceContext {
		t.Errorf("a prompt that does not fit: %+v, %v", a.Faults(), err)
	}
	waitFor(t, "the log of the launch", contains(log, "launch_slot_"))
	if err := s.Stop(t.Context(), 10*time.Second); err != nil {
		t.Error(err)
	}
	if status, err := s.Wait(t.Context()); err != nil || status != (ExitStatus{}) {
		t.Errorf("an idle server that is told to end: %s, %v", status, err)
	}
}

// NaN is found without any guard in the engine, under fluent text too.
func TestRealServerWithNaN(t *testing.T) {
	tree := realengine.Require(t)
	for _, model := range []string{"nan", "nan1"} {
		_, c, _ := serveReal(t, tree, model)
		var bad *ProbeError
		if err := Probe(t.Context(), c); !errors.As(err, &bad) || bad.Face != FaceNaN {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// A server with a client in flight ignores SIGTERM; Stop ends it all the same.
func TestRealServerStopsUnderLoad(t *testing.T) {
	tree := realengine.Require(t)
	s, c, log := serveReal(t, tree, "plain")
	asked := make(chan error, 1)
	go func() {
		_, err := c.Complete(context.Background(), CompletionRequest{Prompt: "a long tale", NPredict: 8000, NProbs: 1})
		asked <- err
	}()
	waitFor(t, "the request's launch", contains(log, "launch_slot_"))
	if err := s.Stop(t.Context(), 200*time.Millisecond); err != nil {
		t.Error(err)
	}
	if err := <-asked; err == nil {
		t.Log("the answer came before the end")
	}
	if left := GroupMembers("/proc", s.PID()); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestRealVersion(t *testing.T) {
	tree := realengine.Require(t)
	v, err := Version(t.Context(), tree.Program("llama-server"), pathEnv)
	if err != nil || v == "" || strings.Contains(v, "version") {
		t.Errorf("%q, %v", v, err)
	}
}
