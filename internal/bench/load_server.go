package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Kinds of reply of the server to load.
const (
	replyTrivial = "trivial" // a short one at once: its clients are what is slow
	replyWhole   = "whole"   // llama-server's, after a while
	replyEvents  = "events"  // the same, an event a token
)

// How long the server takes for an answer that is not trivial, and for each token of one in events.
const (
	think     = 20 * time.Millisecond
	tokenTime = 3 * time.Millisecond
)

// serveLoad answers every request alike until the context ends. It prints its address.
func serveLoad(ctx context.Context, out io.Writer, kind string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Fprintln(out, l.Addr())
	if kind != replyTrivial {
		return http.Serve(l, llamaHandler(kind))
	}
	const body = `{"content":"x","id_slot":0,"tokens_predicted":1,"completion_probabilities":[{"id":1,"token":"x","bytes":[120],"logprob":-0.5}]}`
	reply := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go answerTrivially(c, reply)
	}
}

// answerTrivially reads no more of a request than where it ends.
func answerTrivially(c net.Conn, reply []byte) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 64<<10)
	for {
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
				break
			}
			if v, ok := bytes.CutPrefix(bytes.ToLower(line), []byte("content-length: ")); ok {
				if length, err = strconv.Atoi(string(v)); err != nil {
					return
				}
			}
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

func llamaHandler(kind string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		raw := llamaAnswer(rand.Uint64())
		if kind == replyWhole {
			time.Sleep(think)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
			w.Write(raw)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		tokens := bytes.SplitAfter(raw[bytes.Index(raw, []byte("[{"))+1:len(raw)-2], []byte("}]},"))
		for _, t := range tokens {
			fmt.Fprintf(w, "data: {\"index\":0,\"content\":\"x\",\"tokens\":[120],\"stop\":false,\"id_slot\":-1,\"tokens_predicted\":1,\"tokens_evaluated\":10,\"completion_probabilities\":[%s]}\n\n",
				bytes.TrimSuffix(t, []byte(",")))
			flush.Flush()
			time.Sleep(tokenTime)
		}
		fmt.Fprintf(w, "data: {\"content\":\"\",\"stop\":true,\"id_slot\":0,\"tokens_predicted\":%d,\"stop_type\":\"limit\"}\n\n", len(tokens))
	})
}

const llamaTokens = 96

// llamaAnswer makes an answer of 96 tokens with log-probabilities in the shape of llama-server's.
func llamaAnswer(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var text, tokens bytes.Buffer
	for i := range llamaTokens {
		c := 'A' + rng.IntN(58)
		p := strconv.FormatFloat(float64(float32(-rng.ExpFloat64())), 'f', -1, 64)
		if c == '\\' {
			c = 'x' // it would be escaped
		}
		t := fmt.Sprintf(`"id":%d,"token":"%c","bytes":[%d],"logprob":%s`, c, c, c, p)
		text.WriteByte(byte(c))
		if i > 0 {
			tokens.WriteByte(',')
		}
		fmt.Fprintf(&tokens, `{%s,"top_logprobs":[{%s}]}`, t, t)
	}
	settings := `{"seed":4294967295,"temperature":0.0,"dynatemp_range":0.0,"top_k":40,"top_p":0.949999988079071,"min_p":0.05000000074505806,` +
		`"typical_p":1.0,"repeat_last_n":64,"repeat_penalty":1.0,"dry_sequence_breakers":["\n",":","\"","*"],"n_predict":96,"stream":false,"n_probs":1,` +
		`"samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"],"post_sampling_probs":false}`
	return fmt.Appendf(nil, `{"index":0,"content":"%s","tokens":[],"id_slot":%d,"stop":true,"model":"plain.gguf","tokens_predicted":96,"tokens_evaluated":175,`+
		`"generation_settings":%s,"prompt":"%x seven swans swam over the silver lake","truncated":false,"stop_type":"limit","timings":{"predicted_per_second":%v},`+
		`"completion_probabilities":[%s]}`, text.String(), seed%4, settings, rng.Uint64(), 2000*rng.Float64(), tokens.String())
}
