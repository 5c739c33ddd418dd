package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/fakeengine"
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
			switch {
			case has("estimate"):
				prompt = 1 + len(in.Prompt)/4
			case has("constant"):
				prompt = 7
			case has("grows") && n > 30:
				prompt *= 2
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
	port := args[slices.Index(args, "--port")+1]
	if has("slots") { // a server with the log of llama-server
		e, err := fakeengine.New(fakeengine.Options{Slots: 4, Ctx: 8192, Unified: true, PerToken: time.Millisecond, Log: os.Stderr})
		if err != nil || !e.Start() {
			return 1
		}
		mux.Handle("POST /v1/", e.Handler())
		mux.Handle("POST /completion", e.Handler())
		return serve(port, mux)
	}
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"id":"some-model"}]}`) })
	mux.HandleFunc("POST /v1/chat/completions", complete(true))
	if !has("chat-only") {
		mux.HandleFunc("POST /v1/completions", complete(false))
	}
	return serve(port, mux)
}

func serve(port string, mux *http.ServeMux) int {
	if err := http.ListenAndServe("127.0.0.1:"+port, mux); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
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
	writeScript(t, filepath.Join(p.Path, "llama-server"), script)
	return p
}

// A sound server is never at fault for what it has not, and never passes for
// what it does not show.
func TestOtherServers(t *testing.T) {
	const (
		noSlots  = "invalid(load-shape): the server's log tells nothing of its slots"
		uncounts = "invalid(plan): the tokens of prompts cannot be counted: the server has no POST /tokenize, and "
	)
	for _, tt := range []struct {
		what, api, more string // of the server; of the load; of the plan
		want            string
	}{
		{"slots", APICompletion, "sentinels: {every: 5, prompt_tokens: [300]}\n", "0 faults in 40 requests"},
		{"slots", APICompletions, "", "0 faults in 40 requests"},
		{"slots", APIChat + ", stream: true", "sentinels: {every: 5, prompt_tokens: [300]}\n", "0 faults in 40 requests"},
		{"plain", APICompletions, "sentinels: {every: 5}\n", noSlots},
		{"plain", APIChat + ", stream: true", "", noSlots},
		{"estimate", APIChat, "", noSlots},
		{"no-usage", APIChat, "", uncounts + "its answers to /v1/chat/completions do not tell in usage.prompt_tokens how many the prompt has"},
		{"chat-only", APICompletions, "", uncounts + "answers /v1/completions with status 404"},
		{"constant", APICompletions, "", "invalid(plan): measure the tokenizer: the tokens of prompts cannot be counted: the server counts "},
		{"grows", APICompletions, "", "invalid(plan): prompt "},
		{"broken", APIChat, "", "fault(status): status 500"},
	} {
		t.Run(tt.what+" "+tt.api, func(t *testing.T) {
			t.Parallel()
			p := otherPackage(t, tt.what)
			load := "load: {requests: 40, prompt_tokens: [300, 400], n_predict: [20], request_deadline: 20s, api: " + tt.api + "}\n"
			v := soak(t, RunOptions{Package: p, Plan: fakePlan(t, p, "", load+tt.more)})
			if !strings.HasPrefix(v.Reason, tt.want) {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, tt.want)
			}
			if pass := strings.HasPrefix(tt.want, "0 faults"); pass != (v.Verdict == Pass) {
				t.Error(v.Verdict)
			}
		})
	}
}

// A life of the real server, and of `1bit serve`, is clean with every API, sentinels
// and all.
func TestRealAPIs(t *testing.T) {
	tree := realengine.Require(t)
	p := installed(t, tree)
	for _, tt := range []struct{ load, entry string }{
		{"api: completions, stream: true", "llama-server"},
		{"api: chat_completions", frontEnd},
	} {
		t.Run(tt.load, func(t *testing.T) {
			load := "requests: 40, prompt_tokens: [250, 300], n_predict: [16, 32], request_deadline: 20s, " + tt.load
			more := fmt.Sprintf("server: {entry: %s, flags: [-t, '1']}\nsentinels: {every: 5, prompt_tokens: [300]}\n", tt.entry)
			v := soak(t, RunOptions{Package: p, Plan: realPlan(t, tree.Model("plain"), load, more)})
			if !strings.HasPrefix(v.Reason, "no fault seen, but the bound at 40 requests") || v.Exposure.Selected.LCP != 0 {
				t.Errorf("%s: %s, %+v", v.Verdict, v.Reason, v.Exposure.Selected)
			}
		})
	}
}
