package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/packager/store"
)

// beOther makes the test binary a server that is not llama-server. The value
// says what it lacks or has.
const beOther = "ACCEPTANCE_TEST_OTHER"

// otherServer has the three paths that an OpenAI-compatible server has, and
// writes no log: no /health, /slots, /props, /tokenize. It has a token a word and
// two for its template.
func otherServer(args []string) int {
	if slices.Contains(args, "--version") {
		fmt.Fprintln(os.Stderr, "version: other 1.0")
		return 0
	}
	has := func(what string) bool { return strings.Contains(os.Getenv(beOther), what) }
	var asked atomic.Int32
	complete := func(chat bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var in struct {
				Model     string
				Prompt    string
				Messages  []struct{ Content string }
				MaxTokens int `json:"max_tokens"`
				Logprobs  any
				Stream    bool
			}
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "some-model" {
				http.Error(w, "which model?", http.StatusBadRequest)
				return
			}
			for _, m := range in.Messages {
				in.Prompt += m.Content
			}
			time.Sleep(time.Millisecond)
			n := asked.Add(1)
			if has("broken") && n > 10 {
				http.Error(w, "out of order", http.StatusInternalServerError)
				return
			}
			prompt := len(strings.Fields(in.Prompt))
			if has("estimate") {
				prompt = 1 + len(in.Prompt)/4
			}
			if chat {
				prompt += 2
			}
			var said []string
			entries := []any{}
			for i := range in.MaxTokens {
				word := fmt.Sprintf(" %d", (len(in.Prompt)+i)%97)
				said = append(said, word)
				entries = append(entries, map[string]any{"token": word, "logprob": -0.5, "top_logprobs": []any{map[string]any{"token": word, "logprob": -0.5}}})
			}
			choice := map[string]any{"index": 0, "finish_reason": "length", "text": strings.Join(said, "")}
			if chat {
				choice["message"] = map[string]any{"role": "assistant", "content": strings.Join(said, "")}
				choice["delta"] = choice["message"]
			}
			if in.Logprobs != nil {
				choice["logprobs"] = map[string]any{"content": entries}
			}
			out := map[string]any{"choices": []any{choice}}
			if !has("no-usage") {
				out["usage"] = map[string]any{"prompt_tokens": prompt, "completion_tokens": in.MaxTokens}
			}
			b, _ := json.Marshal(out)
			if in.Stream {
				w.Header().Set("Content-Type", "text/event-stream")
				b = fmt.Appendf(nil, "data: %s\n\ndata: [DONE]\n\n", b)
			}
			w.Write(b)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"id":"some-model"}]}`) })
	mux.HandleFunc("POST /v1/chat/completions", complete(true))
	if !has("chat-only") {
		mux.HandleFunc("POST /v1/completions", complete(false))
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+args[slices.Index(args, "--port")+1])
	if err != nil {
		return 1
	}
	_ = http.Serve(l, mux)
	return 1
}

// otherPackage is a package with that server.
func otherPackage(t *testing.T, what string) *store.Package {
	p := fakePackage(t, "works")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexport %s=%s,\nexec %s \"$@\"\n", beOther, what, self)
	if err := os.WriteFile(filepath.Join(p.Path, "llama-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOtherServer(t *testing.T) {
	for _, what := range []string{"", "no-usage", "estimate", "broken", "chat-only"} {
		for _, api := range []string{APICompletions, APIChat} {
			for _, stream := range []bool{false, true} {
				for _, sentinels := range []string{"", "sentinels: {every: 5}\n"} {
					t.Run(fmt.Sprint(what, " ", api, " ", stream, " ", sentinels != ""), func(t *testing.T) {
						load := fmt.Sprintf("requests: 40, api: %s, stream: %v, prompt_tokens: [24, 100], n_predict: [8], request_deadline: 20s", api, stream)
						p := otherPackage(t, what)
						plan := fakePlan(t, p, "", "load: {"+load+"}\n"+sentinels)
						v := soak(t, RunOptions{Plan: plan, Package: p})
						t.Logf("%s: %s", v.Verdict, v.Reason)
					})
				}
			}
		}
	}
}

func TestOpenAIMatrix(t *testing.T) {
	tree := realengine.Require(t)
	real := installed(t, tree)
	for _, which := range []string{"real", "fake"} {
		for _, api := range []string{"completion", "completions", "chat_completions"} {
			for _, stream := range []bool{false, true} {
				for _, sentinels := range []string{"", "sentinels: {every: 5}\n"} {
					t.Run(fmt.Sprint(which, " ", api, " ", stream, " ", sentinels != ""), func(t *testing.T) {
						load := fmt.Sprintf("requests: 100, api: %s, stream: %v, prompt_tokens: [250, 300], n_predict: [32, 48], request_deadline: 20s", api, stream)
						var p *store.Package
						var plan *Plan
						if which == "real" {
							p = real
							plan = realPlan(t, tree.Model("plain"), load, sentinels)
						} else {
							p = fakePackage(t, "works")
							plan = fakePlan(t, p, "", "load: {"+load+"}\n"+sentinels)
						}
						v := soak(t, RunOptions{Plan: plan, Package: p})
						t.Logf("%s: %s\nslots %v, all busy %.2f, %+v %d never used %d %v states %v", v.Verdict, v.Reason, v.Exposure.LaunchesPerSlot, v.Exposure.AllSlotsBusyShare, v.Exposure.Selected, v.Arms.Clean, v.Exposure.NeverUsedSlots, v.Bounds.NeverUsedSlotUpper95, v.Notes)
					})
				}
			}
		}
	}
}
