package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrNotServed says that a server has not what it was asked for: it is another
// than llama-server, or was told not to have it.
var ErrNotServed = errors.New("the server does not have it")

// notServed tells whether a status says so of a path.
func notServed(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

// Ready asks whether the server takes requests. Where it has no /health, the
// proof is a completion of one token that is not answered with 503: whether the
// answer is sound is not asked here. A server that does not have the path of
// completions either has to have /v1/models, or is not up yet.
func (c *Client) Ready(ctx context.Context) (bool, error) {
	state, err := c.Health(ctx)
	if !errors.Is(err, ErrNotServed) {
		return err == nil && state == HealthOK, err
	}
	a, err := c.Complete(ctx, CompletionRequest{Prompt: "a", NPredict: 1})
	if err == nil && notServed(a.Status) {
		_, err = c.Models(ctx)
	}
	return err == nil && a.Status != http.StatusServiceUnavailable, err
}

// Models asks GET /v1/models for the names by which requests can name a model.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	var out struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := c.get(ctx, http.MethodGet, "/v1/models", nil, &out); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range out.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// Tokenize counts the tokens of text as /completion would see it, special
// tokens included. The error wraps ErrNotServed for a server that refuses the
// question or answers it in another form.
func (c *Client) Tokenize(ctx context.Context, text string) (int, error) {
	status, body, err := c.do(ctx, http.MethodPost, "/tokenize", map[string]any{"content": text, "add_special": true, "parse_special": true})
	if err != nil {
		return 0, err
	}
	var out struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	switch unread := json.Unmarshal(body, &out); {
	case status >= 400 && status < 500, status == http.StatusNotImplemented, status == http.StatusOK && (unread != nil || out.Tokens == nil):
		return 0, fmt.Errorf("post /tokenize of %s: %w: status %d: %s", c.BaseURL, ErrNotServed, status, excerpt(body))
	case status != http.StatusOK:
		return 0, fmt.Errorf("post /tokenize of %s: status %d: %s", c.BaseURL, status, excerpt(body))
	}
	return len(out.Tokens), nil
}
