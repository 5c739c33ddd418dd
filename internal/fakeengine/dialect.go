package fakeengine

import "strings"

// A dialect is the shape of the answers of one path.
type dialect struct {
	whole func(*answer) map[string]any
	first func(*answer) map[string]any // the event before the first token; nil: none
	delta func(*answer, token) map[string]any
	last  func(*answer) []map[string]any
	done  bool // ends with [DONE]
}

func dialects() map[string]dialect {
	return map[string]dialect{
		"/completion":          {whole: wholeNative, delta: deltaNative, last: lastNative},
		"/v1/completions":      {whole: wholeOpenAI, delta: deltaOpenAI, last: lastOpenAI, done: true},
		"/v1/chat/completions": {whole: wholeChat, first: firstChat, delta: deltaChat, last: lastChat, done: true},
	}
}

// entries gives the log-probabilities of tokens as llama-server does, null where
// they are not finite.
func (a *answer) entries(tokens []token) []map[string]any {
	list := []map[string]any{}
	for _, t := range tokens {
		var logprob, second any = t.logprob, t.logprob - t.gap
		if t.null {
			logprob, second = nil, nil
		}
		text := strings.ReplaceAll(t.text, invalid, "") // cut off here, too
		top := []map[string]any{{"id": t.id, "token": text, "bytes": numbers(text), "logprob": logprob}}
		if a.in.NProbs > 1 {
			name := string(rune(t.second))
			top = append(top, map[string]any{"id": t.second, "token": name, "bytes": numbers(name), "logprob": second})
		}
		list = append(list, map[string]any{"id": t.id, "token": text, "bytes": numbers(text), "logprob": logprob, "top_logprobs": top})
	}
	return list
}

func numbers(s string) []int {
	list := []int{}
	for _, b := range []byte(s) {
		list = append(list, int(b))
	}
	return list
}

func (a *answer) ids(tokens []token) []int {
	list := []int{}
	for _, t := range tokens {
		list = append(list, t.id)
	}
	return list
}

func (a *answer) ending() map[string]any {
	return map[string]any{
		"id_slot": a.slot, "stop": true, "stop_type": "limit", "truncated": false, "tokens_predicted": len(a.tokens),
		"tokens_evaluated": len(a.in.Prompt), "timings": map[string]any{"predicted_n": len(a.tokens), "predicted_per_second": nil},
	}
}

func wholeNative(a *answer) map[string]any {
	out := a.ending()
	out["content"], out["tokens"], out["prompt"] = a.text(), a.ids(a.tokens), a.in.Prompt
	if a.probs {
		out["completion_probabilities"] = a.entries(a.tokens)
	}
	return out
}

func deltaNative(a *answer, t token) map[string]any {
	out := map[string]any{"content": t.text, "tokens": []int{t.id}, "stop": false, "id_slot": a.slot}
	if a.probs {
		out["completion_probabilities"] = a.entries([]token{t})
	}
	return out
}

func lastNative(a *answer) []map[string]any {
	out := a.ending()
	out["content"], out["tokens"] = a.tail, []int{}
	return []map[string]any{out}
}

func (a *answer) usage() map[string]any {
	return map[string]any{"completion_tokens": len(a.tokens), "prompt_tokens": len(a.in.Prompt), "total_tokens": len(a.tokens) + len(a.in.Prompt)}
}

// logprobs is the member of a choice, null without.
func (a *answer) logprobs(tokens []token) any {
	if !a.probs {
		return nil
	}
	return map[string]any{"content": a.entries(tokens)}
}

func wholeOpenAI(a *answer) map[string]any {
	choice := map[string]any{"index": 0, "text": a.text(), "logprobs": a.logprobs(a.tokens), "finish_reason": "length"}
	return map[string]any{"object": "text_completion", "choices": []any{choice}, "usage": a.usage()}
}

func deltaOpenAI(a *answer, t token) map[string]any {
	choice := map[string]any{"index": 0, "text": t.text, "logprobs": a.logprobs([]token{t}), "finish_reason": nil}
	return map[string]any{"object": "text_completion", "choices": []any{choice}}
}

func lastOpenAI(a *answer) []map[string]any {
	choice := map[string]any{"index": 0, "text": a.tail, "logprobs": nil, "finish_reason": "length"}
	return a.withUsage(map[string]any{"object": "text_completion", "choices": []any{choice}})
}

// withUsage adds the event that counts, if it was asked for.
func (a *answer) withUsage(last map[string]any) []map[string]any {
	last["timings"] = map[string]any{"predicted_n": len(a.tokens), "prompt_n": len(a.in.Prompt)}
	if !a.in.Options.Usage {
		return []map[string]any{last}
	}
	return []map[string]any{last, {"object": last["object"], "choices": []any{}, "usage": a.usage()}}
}

func wholeChat(a *answer) map[string]any {
	choice := map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": a.text()},
		"logprobs": a.logprobs(a.tokens), "finish_reason": "length"}
	return map[string]any{"object": "chat.completion", "choices": []any{choice}, "usage": a.usage()}
}

func chatEvent(delta map[string]any, logprobs, finish any) map[string]any {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": finish}
	if logprobs != nil {
		choice["logprobs"] = logprobs
	}
	return map[string]any{"object": "chat.completion.chunk", "choices": []any{choice}}
}

func firstChat(*answer) map[string]any {
	return chatEvent(map[string]any{"role": "assistant", "content": nil}, nil, nil)
}

func deltaChat(a *answer, t token) map[string]any {
	return chatEvent(map[string]any{"content": t.text}, a.logprobs([]token{t}), nil)
}

func lastChat(a *answer) []map[string]any {
	delta := map[string]any{}
	if a.tail != "" {
		delta["content"] = a.tail
	}
	return a.withUsage(chatEvent(delta, nil, "length"))
}
