package fakeengine

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

const (
	guardV1   = "HRX returned NaN logits at vocab index 0 - refusing to sample a silently wrong token (engine#123)"
	guardV2   = "common_sampler_sample: HRX returned NaN logits: count=258 of 258, index range [0..257], contiguous=yes, continuing="
	abortText = "/src/llama.cpp/common/sampling.cpp:620: HRX: NaN logits (engine#123)"
)

// answer writes the reply, or what stands in its place.
func (s *server) answer(w http.ResponseWriter, r *http.Request, in completion, slot, number int, bad string) {
	switch bad {
	case "guard-v1":
		s.log.line('E', "%s", guardV1)
	case "guard-v2":
		s.log.line('E', "%syes (engine#315)", guardV2)
	case "abort":
		s.log.line('E', "%sno (engine#315)", guardV2)
		s.log.bare(abortText)
		s.exit(134)
	case "abort-lost":
		s.log.bare(abortText)
		s.exit(134)
	case "crash":
		s.exit(139)
	case "device":
		s.log.line('E', "hrx: HSA_STATUS_ERROR_EXCEPTION: an HSAIL operation resulted in a hardware exception")
	case "hang":
		<-r.Context().Done()
		return
	case "reset":
		if h, ok := w.(http.Hijacker); ok {
			if conn, _, err := h.Hijack(); err == nil {
				conn.Close()
			}
		}
		return
	case "status":
		reply(w, http.StatusInternalServerError, serverError(500, "Compute error.", "server_error"))
		return
	case "format":
		reply(w, http.StatusInternalServerError, serverError(500, "The model output does not match the expected Content-only (peg-native) format", "server_error"))
		return
	case "context":
		s.log.line('E', "srv    send_error: task id = %d, error: Context size has been exceeded.", number)
		reply(w, http.StatusInternalServerError, serverError(500, "Context size has been exceeded.", "server_error"))
		return
	}
	body := s.body(in, slot, number, bad)
	w.Header().Set("Content-Type", "application/json")
	if bad == "stall" {
		w.Write(body[:len(body)/2])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		<-r.Context().Done()
		return
	}
	w.Write(body)
}

func (s *server) body(in completion, slot, number int, bad string) []byte {
	salt := 0
	if bad == "differ" {
		salt = number
	}
	content := text(in.Prompt, salt, in.NPredict)
	switch bad {
	case "leak":
		s.mu.Lock()
		content = "so " + s.nonces[0] + content
		s.mu.Unlock()
	case "replacement":
		content += "\uFFFD"
	}
	const mark = "@@CUT@@" // stands where raw bytes go
	shown := content
	switch bad {
	case "utf8":
		shown = content[:1] + mark + content[1:]
	case "utf8-cut":
		shown = content + mark
	}
	out := map[string]any{
		"content": shown, "id_slot": slot, "stop": true, "stop_type": "limit", "truncated": false,
		"tokens_predicted": in.NPredict, "tokens_evaluated": len(in.Prompt), "prompt": in.Prompt,
	}
	if in.NProbs > 0 && bad != "no-probs" {
		probs := make([]map[string]any, in.NPredict)
		for i := range probs {
			var logprob any = -0.5
			if bad == "null" && i == 0 {
				logprob = nil
			}
			probs[i] = map[string]any{"id": int(content[i%len(content)]), "logprob": logprob}
		}
		out["completion_probabilities"] = probs
	}
	b, err := json.Marshal(out)
	if err != nil {
		return []byte(err.Error())
	}
	b = bytes.Replace(b, []byte(mark), []byte{0xE5}, 1)
	if bad == "json" {
		b = []byte(strings.Replace(string(b), `"stop":true`, `"stop":tru`, 1))
	}
	return b
}
