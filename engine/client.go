package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds what is read of one reply. A reply with 100 tokens and one
// log-probability each is 16 kB.
const maxBody = 64 << 20

// A Client speaks to one llama-server. The zero HTTP means a client that opens
// one connection a request, uses no proxy, follows no redirect and has no
// time limit but the context's.
type Client struct {
	BaseURL string // such as http://127.0.0.1:8095, with or without a final slash
	HTTP    *http.Client
}

// HealthState is what /health says of a server that answers it.
type HealthState string

// The two answers of /health.
const (
	HealthOK      HealthState = "ok"
	HealthLoading HealthState = "loading"
)

// CompletionRequest is the body of POST /completion, without streaming.
// CachePrompt, Temperature and Seed are always sent, so that the server's own
// defaults never change a measurement.
type CompletionRequest struct {
	Prompt       string  `json:"prompt"`
	NPredict     int     `json:"n_predict"`
	Temperature  float64 `json:"temperature"`
	NProbs       int     `json:"n_probs,omitempty"` // >0 asks for log-probabilities before sampling
	CachePrompt  bool    `json:"cache_prompt"`
	Seed         int64   `json:"seed"`
	ReturnTokens bool    `json:"return_tokens,omitempty"`
	IgnoreEOS    bool    `json:"ignore_eos,omitempty"`
}

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
	return "", fmt.Errorf("get /health of %s: status %d: %s", c.BaseURL, status, excerpt(body))
}

// Complete sends one completion and returns whatever came back, also with a
// status other than 200 or a body that is not JSON: the Answer's Faults tell.
// The error is for transport alone (no connection, cut off, deadline).
func (c *Client) Complete(ctx context.Context, r CompletionRequest) (*Answer, error) {
	body := struct {
		CompletionRequest
		Stream       bool  `json:"stream"`
		PostSampling *bool `json:"post_sampling_probs,omitempty"`
	}{CompletionRequest: r}
	if r.NProbs > 0 {
		// After sampling a NaN would read as a probability of one.
		body.PostSampling = new(bool)
	}
	status, raw, err := c.do(ctx, http.MethodPost, "/completion", body)
	if err != nil {
		return nil, err
	}
	return ParseAnswer(status, raw, r.NProbs > 0), nil
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

// Tokenize counts the tokens of text as /completion would see it, special
// tokens included.
func (c *Client) Tokenize(ctx context.Context, text string) (int, error) {
	in := map[string]any{"content": text, "add_special": true, "parse_special": true}
	var out struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := c.get(ctx, http.MethodPost, "/tokenize", in, &out); err != nil {
		return 0, err
	}
	return len(out.Tokens), nil
}

// get does one request and decodes its 200 into out.
func (c *Client) get(ctx context.Context, method, path string, in, out any) error {
	status, body, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s %s of %s: status %d: %s", strings.ToLower(method), path, c.BaseURL, status, excerpt(body))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read %s of %s: %w", path, c.BaseURL, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, in any) (int, []byte, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, nil, fmt.Errorf("encode request for %s: %w", path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, body)
	if err != nil {
		return 0, nil, fmt.Errorf("make request for %s of %s: %w", path, c.BaseURL, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.GetBody = nil // the transport resends a request it can rewind
	client := c.HTTP
	if client == nil {
		client = newHTTPClient()
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", strings.ToLower(method), path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return 0, nil, fmt.Errorf("read reply of %s %s: %w", strings.ToLower(method), path, err)
	}
	if len(raw) > maxBody {
		return 0, nil, fmt.Errorf("read reply of %s %s: more than %d bytes", strings.ToLower(method), path, maxBody)
	}
	return resp.StatusCode, raw, nil
}

// newHTTPClient makes the client of a zero Client.HTTP.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 1 << 20,
			IdleConnTimeout:        time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
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
