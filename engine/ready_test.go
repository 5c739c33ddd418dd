package engine

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// paths answers each path with a status, or with a body and 200; others with 404.
func paths(t *testing.T, of map[string]any) *Client {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch v := of[r.URL.Path].(type) {
		case int:
			w.WriteHeader(v)
		case string:
			fmt.Fprint(w, v)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return &Client{BaseURL: srv.URL, API: APIChat}
}

func TestReady(t *testing.T) {
	const chat = "/v1/chat/completions"
	for _, tt := range []struct {
		name string
		of   map[string]any
		want bool
	}{
		{"health", map[string]any{"/health": 200}, true},
		{"loading", map[string]any{"/health": 503, chat: 200}, false},
		{"no health", map[string]any{chat: 200}, true},
		{"no health, loading", map[string]any{chat: 503, "/v1/models": `{"data":[]}`}, false},
		{"no health and not this API", map[string]any{"/v1/models": `{"data":[{"id":"m"}]}`}, true},
		{"nothing yet", nil, false},
	} {
		if got, err := paths(t, tt.of).Ready(t.Context()); got != tt.want {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	names, err := paths(t, map[string]any{"/v1/models": `{"data":[{"id":"a"},{"id":"b"}]}`}).Models(t.Context())
	if err != nil || fmt.Sprint(names) != "[a b]" {
		t.Errorf("%v, %v", names, err)
	}
}

func TestTokenizeOfOtherServers(t *testing.T) {
	for _, tt := range []struct {
		answer any
		other  bool
		tokens int
	}{
		{`{"tokens":[1,2,3]}`, false, 3},
		{`{"tokens":[]}`, false, 0},
		{404, true, 0}, {405, true, 0}, {422, true, 0}, {501, true, 0},
		{`<html>hello</html>`, true, 0}, {`{"count":3}`, true, 0},
		{500, false, 0},
	} {
		n, err := paths(t, map[string]any{"/tokenize": tt.answer}).Tokenize(t.Context(), "some text")
		if n != tt.tokens || errors.Is(err, ErrNotServed) != tt.other || tt.answer == 500 && err == nil {
			t.Errorf("%v: %d, %v", tt.answer, n, err)
		}
	}
}
