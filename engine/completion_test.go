package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Bodies as servers get them.
func TestCompletionBody(t *testing.T) {
	prompt := "a \"b\" \\ <é>\n"
	full := CompletionRequest{Prompt: prompt, NPredict: 8, Temperature: 0.25, NProbs: 2, CachePrompt: true, Seed: -1, ReturnTokens: true, IgnoreEOS: true, Stream: true}
	messages := []any{map[string]any{"role": "user", "content": prompt}}
	tests := []struct {
		api, model, path string
		request          CompletionRequest
		want             map[string]any
	}{
		{"", "", "/completion", CompletionRequest{Prompt: "plain"}, map[string]any{
			"prompt": "plain", "n_predict": 0.0, "temperature": 0.0, "seed": 0.0, "cache_prompt": false, "stream": false}},
		{APICompletion, "m", "/completion", full, map[string]any{
			"prompt": prompt, "n_predict": 8.0, "temperature": 0.25, "seed": -1.0, "cache_prompt": true, "stream": true,
			"n_probs": 2.0, "post_sampling_probs": false, "return_tokens": true, "ignore_eos": true}},
		{APICompletions, "m", "/v1/completions", full, map[string]any{
			"model": "m", "prompt": prompt, "max_tokens": 8.0, "temperature": 0.25, "seed": -1.0, "cache_prompt": true, "stream": true,
			"stream_options": map[string]any{"include_usage": true}, "logprobs": 2.0, "ignore_eos": true}},
		{APIChat, "", "/v1/chat/completions", full, map[string]any{
			"messages": messages, "max_tokens": 8.0, "temperature": 0.25, "seed": -1.0, "cache_prompt": true, "stream": true,
			"stream_options": map[string]any{"include_usage": true}, "logprobs": true, "top_logprobs": 2.0, "ignore_eos": true}},
		{APICompletions, "", "/v1/completions", CompletionRequest{}, map[string]any{
			"prompt": "", "max_tokens": 0.0, "temperature": 0.0, "seed": 0.0, "cache_prompt": false, "stream": false}},
	}
	for _, tt := range tests {
		path, body, err := tt.request.body(tt.api, tt.model)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || path != tt.path {
			t.Errorf("%s: path %s, body (-want +got):\n%s", tt.api, path, diff)
		}
	}
	if _, _, err := full.body("responses", ""); err == nil {
		t.Error("an API that is not there")
	}
}
