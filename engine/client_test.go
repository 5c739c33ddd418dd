package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestClientSendsWhatItPromises(t *testing.T) {
	var got map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		json.Unmarshal(b, &got)
		fmt.Fprint(w, `{"content":"x","tokens_predicted":1,"completion_probabilities":[{"id":1,"logprob":-1}]}`)
	}))
	defer srv.Close()
	c := &Client{BaseURL: srv.URL + "/"}
	a, err := c.Complete(t.Context(), CompletionRequest{Prompt: "p", NPredict: 8, NProbs: 1})
	if err != nil || len(a.Faults()) > 0 {
		t.Fatalf("answer %+v, error %v", a, err)
	}
	for key, want := range map[string]any{
		"stream": false, "cache_prompt": false, "temperature": 0.0, "n_probs": 1.0, "post_sampling_probs": false,
	} {
		if v, sent := got[key]; !sent || v != want {
			t.Errorf("sent %s = %v, want %v", key, v, want)
		}
	}
}

func TestClientNeverRetriesNorFollows(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hits.Add(1); r.URL.Path == "/slots" {
			http.Redirect(w, r, "/props", http.StatusTemporaryRedirect)
			return
		}
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	}))
	defer srv.Close()
	c := &Client{BaseURL: srv.URL}
	if _, err := c.Complete(t.Context(), CompletionRequest{}); err == nil {
		t.Error("a closed connection is no error")
	}
	if _, err := c.Slots(t.Context()); err == nil {
		t.Error("a redirect was followed")
	}
	if n := hits.Load(); n != 2 {
		t.Errorf("%d requests arrived, want 2", n)
	}
}

func TestClientHealth(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer srv.Close()
	c := &Client{BaseURL: srv.URL}
	if s, err := c.Health(t.Context()); s != HealthOK || err != nil {
		t.Errorf("200: %q, %v", s, err)
	}
	status = http.StatusServiceUnavailable
	if s, err := c.Health(t.Context()); s != HealthLoading || err != nil {
		t.Errorf("503: %q, %v", s, err)
	}
	status = http.StatusTeapot
	if s, err := c.Health(t.Context()); err == nil {
		t.Errorf("418: %q", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := c.Health(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

func TestProbe(t *testing.T) {
	sound := `{"content":"ab","id_slot":0,"tokens":[1,2],"tokens_predicted":2,"completion_probabilities":[{"id":1,"logprob":-1},{"id":2,"logprob":-2}]}`
	other := `{"content":"ac","id_slot":0,"tokens":[1,3],"tokens_predicted":2,"completion_probabilities":[{"id":1,"logprob":-1},{"id":3,"logprob":-2}]}`
	null := `{"content":"ab","tokens_predicted":2,"completion_probabilities":[{"id":1,"logprob":-1},{"id":2,"logprob":null}]}`
	const idle, busy = `[{"id":0,"id_task":1,"is_processing":false},{"id":1,"is_processing":false}]`,
		`[{"id":0,"id_task":1,"is_processing":false},{"id":1,"id_task":9,"is_processing":true}]`
	const moved = `[{"id":0,"id_task":4,"is_processing":true},{"id":1,"id_task":12,"is_processing":false}]`
	tests := []struct {
		name    string
		answers []string // taken in turn
		slots   []string
		want    string
	}{
		{"sound", []string{sound}, []string{idle}, ""},
		{"null in the first answer", []string{null}, []string{idle}, FaceNaN},
		{"null in the second answer", []string{sound, null}, []string{idle}, FaceNaN},
		{"differs while idle", []string{sound, other}, []string{idle}, FaceDiffers},
		{"differs and slots unknown", []string{sound, other}, []string{"no"}, FaceDiffers},
		{"differs under load", []string{sound, other}, []string{busy}, ""},
		{"differs and another slot took a task in between", []string{sound, other}, []string{idle, moved}, ""},
		{"equal under load", []string{sound}, []string{busy}, ""},
		{"no tokens", []string{`{"content":"","tokens_predicted":0}`}, []string{idle}, FaceNotObserved},
		{"invalid UTF-8", []string{"{\"content\":\"\xff\"}"}, []string{idle}, FaceUTF8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked, looked := 0, 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slots" {
					fmt.Fprint(w, tt.slots[looked%len(tt.slots)])
					looked++
					return
				}
				fmt.Fprint(w, tt.answers[asked%len(tt.answers)])
				asked++
			}))
			defer srv.Close()
			err := Probe(t.Context(), &Client{BaseURL: srv.URL})
			var probe *ProbeError
			if errors.As(err, &probe); err != nil && probe == nil {
				t.Fatalf("error of another kind: %v", err)
			}
			if got := face(probe); got != tt.want {
				t.Errorf("face %q (%v), want %q", got, err, tt.want)
			}
		})
	}
	var probe *ProbeError
	if err := Probe(t.Context(), &Client{BaseURL: "http://127.0.0.1:1"}); !errors.As(err, &probe) || probe.Face != FaceTransport {
		t.Errorf("nobody listens: %v", err)
	}
}

func face(e *ProbeError) string {
	if e == nil {
		return ""
	}
	return e.Face
}
