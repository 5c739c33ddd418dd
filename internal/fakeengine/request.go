package fakeengine

import "strings"

// A request is the body of a completion, in whichever dialect.
type request struct {
	Prompt   string `json:"prompt"`
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	NPredict  int  `json:"n_predict"`
	MaxTokens int  `json:"max_tokens"`
	NProbs    int  `json:"n_probs"`
	Logprobs  any  `json:"logprobs"` // a number, or true with top_logprobs
	Top       int  `json:"top_logprobs"`
	Stream    bool `json:"stream"`
	Options   struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// normal brings what the dialects call by other names to one.
func (r *request) normal() {
	var said []string
	for _, m := range r.Messages {
		said = append(said, m.Content)
	}
	if len(said) > 0 {
		r.Prompt = strings.Join(said, "\n")
	}
	if r.NPredict <= 0 {
		r.NPredict = r.MaxTokens
	}
	if r.NPredict <= 0 {
		r.NPredict = 16
	}
	switch v := r.Logprobs.(type) {
	case float64:
		r.NProbs = max(r.NProbs, int(v))
	case bool:
		if v {
			r.NProbs = max(r.NProbs, r.Top, 1)
		}
	}
}
