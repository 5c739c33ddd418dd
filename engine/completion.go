package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The paths that take a completion.
const (
	APICompletion  = "completion"       // llama-server's own /completion
	APICompletions = "completions"      // OpenAI-compatible /v1/completions
	APIChat        = "chat_completions" // OpenAI-compatible /v1/chat/completions; the prompt is the one message
)

// CompletionRequest is one completion, on whichever path. CachePrompt,
// Temperature and Seed are always sent, so that the server's own defaults never
// change a measurement.
type CompletionRequest struct {
	Prompt       string
	NPredict     int
	Temperature  float64
	NProbs       int // >0 asks for log-probabilities before sampling, of that many candidates
	CachePrompt  bool
	Seed         int64
	ReturnTokens bool // ids of the tokens; only /completion has them
	IgnoreEOS    bool
	Stream       bool // take the answer as server-sent events
}

// openAIBody is the body of the OpenAI-compatible paths. CachePrompt and
// IgnoreEOS are llama-server's; others ignore them.
type openAIBody struct {
	Model         string         `json:"model,omitempty"`
	Prompt        *string        `json:"prompt,omitempty"`
	Messages      []chatMessage  `json:"messages,omitempty"`
	MaxTokens     int            `json:"max_tokens"`
	Temperature   float64        `json:"temperature"`
	Seed          int64          `json:"seed"`
	Logprobs      any            `json:"logprobs,omitempty"` // a number for completions, true for chats
	TopLogprobs   int            `json:"top_logprobs,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
	CachePrompt   bool           `json:"cache_prompt"`
	IgnoreEOS     bool           `json:"ignore_eos,omitempty"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// body gives the path and the body of a request by an API.
func (r CompletionRequest) body(api, model string) (path string, body []byte, err error) {
	switch api {
	case APICompletion, "":
		return "/completion", r.nativeBody(), nil
	case APICompletions, APIChat:
	default:
		return "", nil, fmt.Errorf("no API called %q: there are %s, %s and %s", api, APICompletion, APICompletions, APIChat)
	}
	b := openAIBody{
		Model: model, MaxTokens: r.NPredict, Temperature: r.Temperature, Seed: r.Seed, Stream: r.Stream,
		CachePrompt: r.CachePrompt, IgnoreEOS: r.IgnoreEOS,
	}
	if r.Stream {
		b.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if api == APICompletions {
		path, b.Prompt = "/v1/completions", &r.Prompt
		if r.NProbs > 0 {
			b.Logprobs = r.NProbs
		}
	} else {
		path, b.Messages = "/v1/chat/completions", []chatMessage{{Role: "user", Content: r.Prompt}}
		if r.NProbs > 0 {
			b.Logprobs, b.TopLogprobs = true, r.NProbs
		}
	}
	if body, err = json.Marshal(b); err != nil {
		return "", nil, fmt.Errorf("encode request for %s: %w", path, err)
	}
	return path, body, nil
}

// nativeBody writes the body of POST /completion. It is written by hand, since
// a load at thousands of requests a second takes a tenth of its time to encode
// them otherwise.
func (r CompletionRequest) nativeBody() []byte {
	b := make([]byte, 0, len(r.Prompt)+256)
	b = appendString(append(b, `{"prompt":`...), r.Prompt)
	b = strconv.AppendInt(append(b, `,"n_predict":`...), int64(r.NPredict), 10)
	b = strconv.AppendFloat(append(b, `,"temperature":`...), r.Temperature, 'g', -1, 64)
	b = strconv.AppendInt(append(b, `,"seed":`...), r.Seed, 10)
	b = strconv.AppendBool(append(b, `,"cache_prompt":`...), r.CachePrompt)
	b = strconv.AppendBool(append(b, `,"stream":`...), r.Stream)
	if r.NProbs > 0 {
		// After sampling a NaN would read as a probability of one.
		b = strconv.AppendInt(append(b, `,"post_sampling_probs":false,"n_probs":`...), int64(r.NProbs), 10)
	}
	if r.ReturnTokens {
		b = append(b, `,"return_tokens":true`...)
	}
	if r.IgnoreEOS {
		b = append(b, `,"ignore_eos":true`...)
	}
	return append(b, '}')
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always can be
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Complete sends one completion and returns whatever came back, also with a
// status other than 200 or a body that is not JSON: the Answer's Faults tell.
// The error is for transport alone: no connection, cut off (a *CutError holds
// what had come), the context's end.
func (c *Client) Complete(ctx context.Context, r CompletionRequest) (*Answer, error) {
	path, body, err := r.body(c.API, c.Model)
	if err != nil {
		return nil, err
	}
	var first *firstToken
	if r.Stream {
		first = &firstToken{stream: stream{answer: newAnswer(http.StatusOK, r.NProbs > 0)}}
	}
	status, raw, err := c.exchange(ctx, http.MethodPost, path, body, first)
	if err != nil {
		return nil, err
	}
	a := ParseAnswer(status, raw, r.NProbs > 0)
	if first != nil {
		a.FirstToken = first.after
	}
	return a, nil
}

// firstToken measures when the first token of a stream comes.
type firstToken struct {
	stream stream
	sent   time.Time
	after  time.Duration // 0: not yet
}

// look reads what has come until now.
func (f *firstToken) look(raw []byte) {
	if f != nil && f.after == 0 && isEventStream(raw) && f.stream.feed(raw, false) {
		f.after = time.Since(f.sent)
	}
}
