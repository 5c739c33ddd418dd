package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A Client speaks to one server by HTTP/1.1. It sends each request once: it
// follows no redirect, uses no proxy and never tries again. What bounds a
// request is its context alone. It may be used by several goroutines and may
// not be copied after its first request.
type Client struct {
	BaseURL string // such as http://127.0.0.1:8095, with or without a final slash
	API     string // where Complete asks: APICompletion (also ""), APICompletions or APIChat
	Model   string // sent on the OpenAI-compatible paths; "": none, the server has but one
	Key     string // the server's API key; "": none

	// Reuse lets a connection carry one request after another, as long as that
	// cannot be mistaken for a fault: the server said that it keeps the
	// connection, it has idled less than a second and is still open. It halves
	// the processor time of a load. Servers with a fixed number of threads bind
	// one to each connection, and starve the workers that they have none for;
	// llama-server 0.7.0 does not: 64 workers on four slots have equal shares.
	Reuse bool

	idle idleConns
}

// HealthState is what /health says of a server that answers it.
type HealthState string

// The two answers of /health.
const (
	HealthOK      HealthState = "ok"
	HealthLoading HealthState = "loading"
)

// SlotState is one row of GET /slots.
type SlotState struct {
	ID         int  `json:"id"`
	TaskID     int  `json:"id_task"` // -1 or absent while the slot was never used
	Processing bool `json:"is_processing"`
	ContextLen int  `json:"n_ctx"`
	Decoded    int  `json:"-"` // tokens that the task has been given so far, 0 where the server does not tell
}

// Props is the part of GET /props that identifies what runs.
type Props struct {
	TotalSlots int    `json:"total_slots"`
	ModelPath  string `json:"model_path"`
	BuildInfo  string `json:"build_info"`
}

// Health asks /health: 200 is HealthOK and 503 HealthLoading; anything else,
// also no answer, is an error.
func (c *Client) Health(ctx context.Context) (HealthState, error) {
	status, body, err := c.do(ctx, http.MethodGet, "/health", nil)
	if err != nil {
		return "", err
	}
	switch status {
	case http.StatusOK:
		return HealthOK, nil
	case http.StatusServiceUnavailable:
		return HealthLoading, nil
	}
	err = fmt.Errorf("get /health of %s: status %d: %s", c.BaseURL, status, excerpt(body))
	if notServed(status) {
		err = fmt.Errorf("%w: %w", ErrNotServed, err)
	}
	return "", err
}

// Slots asks GET /slots what every slot is doing.
func (c *Client) Slots(ctx context.Context) ([]SlotState, error) {
	var rows []struct {
		SlotState
		TaskID *int            `json:"id_task"`
		Next   json.RawMessage `json:"next_token"`
	}
	if err := c.get(ctx, http.MethodGet, "/slots", nil, &rows); err != nil {
		return nil, err
	}
	slots := make([]SlotState, len(rows))
	for i, row := range rows {
		slots[i] = row.SlotState
		slots[i].TaskID = -1
		if row.TaskID != nil {
			slots[i].TaskID = *row.TaskID
		}
		slots[i].Decoded = decoded(row.Next)
	}
	return slots, nil
}

// decoded reads n_decoded of a slot's next_token, which is an object, or a list of one.
func decoded(next json.RawMessage) int {
	var list []struct {
		N int `json:"n_decoded"`
	}
	if json.Unmarshal(next, &list) == nil && len(list) > 0 {
		return list[0].N
	}
	var one struct {
		N int `json:"n_decoded"`
	}
	_ = json.Unmarshal(next, &one)
	return one.N
}

// Props asks GET /props.
func (c *Client) Props(ctx context.Context) (*Props, error) {
	p := new(Props)
	if err := c.get(ctx, http.MethodGet, "/props", nil, p); err != nil {
		return nil, err
	}
	return p, nil
}

// get does one request and decodes its 200 into out.
func (c *Client) get(ctx context.Context, method, path string, in, out any) error {
	status, body, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	switch {
	case notServed(status):
		return fmt.Errorf("%s %s of %s: %w: status %d: %s", strings.ToLower(method), path, c.BaseURL, ErrNotServed, status, excerpt(body))
	case status != http.StatusOK:
		return fmt.Errorf("%s %s of %s: status %d: %s", strings.ToLower(method), path, c.BaseURL, status, excerpt(body))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read %s of %s: %w", path, c.BaseURL, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, in any) (int, []byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return 0, nil, fmt.Errorf("encode request for %s: %w", path, err)
		}
	}
	return c.exchange(ctx, method, path, body, nil)
}

// excerpt quotes the beginning of a body for an error message.
func excerpt(b []byte) string {
	const most = 160
	b = bytes.TrimSpace(b)
	if len(b) > most {
		return fmt.Sprintf("%q…", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
