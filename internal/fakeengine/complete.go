package fakeengine

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// complete answers one completion, or does what its fault says.
func (e *Engine) complete(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		reply(w, http.StatusBadRequest, serverError(400, err.Error(), "invalid_request_error"))
		return
	}
	in.normal()
	j := e.take(in.Prompt)
	done := sync.OnceFunc(func() { e.release(j, len(in.Prompt), in.NPredict) })
	defer done()
	if !wait(r.Context(), time.Duration(in.NPredict+1)*e.o.PerToken) {
		return
	}
	bad := e.due(j)
	if bad == "overcommit" {
		e.overcommit()
	}
	if failed, _ := e.crowd(j); failed || bad == "context" {
		e.log.line('E', "srv    send_error: task id = %d, error: Context size has been exceeded.", j.task)
		reply(w, http.StatusInternalServerError, serverError(500, "Context size has been exceeded.", "server_error"))
		return
	}
	if e.log.tell(bad); e.dies(bad) || e.refuses(w, r, j, bad) {
		return
	}
	a := e.generate(in, j, bad)
	if !halved(bad) {
		done() // the client may have its answer before we are back here
	}
	e.write(w, r, a, bad)
	e.later(j)
}

// due gives the fault that a completion is due to have.
func (e *Engine) due(j job) string {
	kind := e.fault.kind
	switch kind {
	case "differ":
		if j.number >= e.fault.at {
			return kind
		}
	case "numeric", "corrupt-load", "corrupt-text", "corrupt-shape", "drift":
		if _, crowded := e.crowd(j); j.number >= e.fault.at && j.again && crowded {
			return kind
		}
	default:
		if j.number == e.fault.at {
			return kind
		}
	}
	return ""
}

// tell writes the lines of a fault.
func (l *logger) tell(bad string) {
	switch bad {
	case "guard-v1":
		l.line('E', "%s", guardV1)
	case "guard-v2", "guard-null":
		l.line('E', "%syes (engine#315)", guardV2)
	case "abort":
		l.line('E', "%sno (engine#315)", guardV2)
		l.bare(abortText)
	case "abort-lost":
		l.bare(abortText)
	case "hsa":
		l.line('E', "%s", hsaError)
	}
}

// dies ends the process within a request.
func (e *Engine) dies(bad string) bool {
	switch bad {
	case "abort", "abort-lost":
		e.o.Exit(134)
	case "crash":
		e.o.Exit(139)
	default:
		return false
	}
	return true
}

// later ends the process after an answer has gone out.
func (e *Engine) later(j job) {
	code, ends := map[string]int{"exit-0": 0, "exit-134": 134, "exit-137": 137, "exit-139": 139, "assert": 134, "restart": respawn}[e.fault.kind]
	if !ends || j.number != e.fault.at {
		return
	}
	const afterwards = 50 * time.Millisecond
	time.AfterFunc(afterwards, func() {
		if e.fault.kind == "assert" {
			e.log.bare(assertion)
		}
		e.o.Exit(code)
	})
}

// refuses gives something else than an answer.
func (e *Engine) refuses(w http.ResponseWriter, r *http.Request, j job, bad string) bool {
	switch bad {
	case "hang":
		<-r.Context().Done()
	case "reset":
		hangUp(w)
	case "status":
		reply(w, http.StatusInternalServerError, serverError(500, "Compute error.", "server_error"))
	case "unavailable":
		reply(w, http.StatusServiceUnavailable, serverError(503, "The server is overloaded", "unavailable_error"))
	case "loading":
		reply(w, http.StatusServiceUnavailable, serverError(503, "Loading model", "unavailable_error"))
	case "format":
		reply(w, http.StatusInternalServerError, serverError(500, "The model output does not match the expected Content-only (peg-native) format", "server_error"))
	case "exceed-context":
		const text = "the request exceeds the available context size, try increasing it"
		e.log.line('E', "srv    send_error: task id = %d, error: %s", j.task, text)
		reply(w, http.StatusBadRequest, serverError(400, text, "exceed_context_size_error"))
	default:
		return false
	}
	return true
}

// write sends the answer, whole or as a stream.
func (e *Engine) write(w http.ResponseWriter, r *http.Request, a *answer, bad string) {
	d := dialects()[r.URL.Path]
	var body []byte
	if a.in.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		body = d.stream(a, bad)
	} else {
		w.Header().Set("Content-Type", "application/json")
		body = d.body(a, bad)
	}
	body = bytes.ReplaceAll(body, []byte(invalid), []byte{0xE5})
	if !halved(bad) {
		// So that it has arrived whole with its last byte, whatever happens then.
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	} else {
		body = body[:len(body)/2]
	}
	w.Write(body)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	switch bad {
	case "cut":
		hangUp(w)
	case "stall":
		<-r.Context().Done()
	}
}

// halved tells whether only half of the answer is sent.
func halved(bad string) bool { return bad == "stall" || bad == "cut" }

func (d dialect) body(a *answer, bad string) []byte {
	out := d.whole(a)
	if bad == "in-band" {
		out = serverError(500, "Compute error.", "server_error")
	}
	return encode(out, bad == "json")
}

// stream makes the events of an answer.
func (d dialect) stream(a *answer, bad string) []byte {
	var b bytes.Buffer
	event := func(v map[string]any, broken bool) {
		b.WriteString("data: ")
		b.Write(encode(v, broken))
		b.WriteString("\n\n")
	}
	if d.first != nil {
		event(d.first(a), false)
	}
	for i, t := range a.tokens {
		event(d.delta(a, t), bad == "json" && i == 1)
		if bad == "in-band" && i == 1 {
			event(serverError(500, "Compute error.", "server_error"), false)
			return b.Bytes()
		}
	}
	for _, v := range d.last(a) {
		event(v, false)
	}
	if d.done {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.Bytes()
}

// encode makes JSON, or what only looks like it.
func encode(v map[string]any, broken bool) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	if broken {
		b[len(b)-1] = ')'
	}
	return b
}

// hangUp closes the connection.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			conn.Close()
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
