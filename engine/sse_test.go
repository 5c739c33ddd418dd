package engine

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// saw is what a test looks at of an answer that came as a stream.
type saw struct {
	Content string
	Faces   []string
	Detail  string // part of the first fault's
	Tokens  int
	Cut     bool
}

func seen(a *Answer) saw {
	s := saw{Content: a.Content, Tokens: a.TokensPredicted, Cut: a.Cut}
	for _, f := range a.Faults() {
		s.Faces = append(s.Faces, f.Face)
		if s.Detail == "" {
			s.Detail = f.Detail
		}
	}
	return s
}

// Streams as servers, front ends and proxies send them.
func TestStreamFiles(t *testing.T) {
	tests := []struct {
		file string
		want saw
	}{
		{"a-error-field.txt", saw{Content: "Hi", Faces: []string{FaceStatus}, Detail: "the request exceeds the available context size"}},
		{"b-data-error.txt", saw{Faces: []string{FaceStatus}, Detail: "Compute error.", Cut: true}},
		{"c-comments.txt", saw{Content: "ab"}},
		{"d-cut.txt", saw{Content: "unfinished", Faces: []string{FaceTransport}, Detail: "ended too early", Cut: true}},
		{"e-usage-last.txt", saw{Tokens: 3}},
		{"g-bad-utf8.txt", saw{Content: "ab\uFFFD\uFFFD\uFFFD\uFFFD", Faces: []string{FaceUTF8}, Detail: "invalid UTF-8 at byte 20"}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata/streams", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			a := ParseAnswer(200, raw, false)
			got := seen(a)
			if !strings.Contains(got.Detail, tt.want.Detail) {
				t.Errorf("%q does not say %q", got.Detail, tt.want.Detail)
			}
			got.Detail = tt.want.Detail
			if diff := cmp.Diff(tt.want, got); diff != "" || !a.Streamed {
				t.Errorf("a stream: %v, (-want +got):\n%s", a.Streamed, diff)
			}
		})
	}
}

// Characters and the two line ends of an event may be cut apart anywhere.
func TestStreamCutInCharacters(t *testing.T) {
	raw, err := os.ReadFile("testdata/streams/f-split-chunks.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Chunks []string `json:"hex_chunks"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	var got []byte
	s := stream{answer: newAnswer(200, false)}
	for i, chunk := range file.Chunks {
		b, err := hex.DecodeString(chunk)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b...)
		s.feed(got, i == len(file.Chunks)-1)
	}
	if s.answer.Content != "中😀é" || len(s.answer.Faults()) > 0 || s.answer.Events != 1 {
		t.Errorf("%q, %d events, faults %v", s.answer.Content, s.answer.Events, s.answer.Faults())
	}
}

func TestStreams(t *testing.T) {
	const probs = `data: {"content":"a","tokens":[5],"stop":false,"id_slot":-1,"tokens_predicted":1,` +
		`"completion_probabilities":[{"id":5,"token":"a","bytes":[97],"logprob":-0.5,"top_logprobs":[{"id":5,"logprob":-0.5},{"id":6,"logprob":-2}]}]}` + "\n\n"
	const last = `data: {"content":"","tokens":[],"stop":true,"id_slot":3,"tokens_predicted":1,"tokens_evaluated":9,"stop_type":"limit"}` + "\n\n"
	tests := []struct {
		name  string
		raw   string
		asked bool
		want  saw
	}{
		{"sound", probs + last, true, saw{Content: "a", Tokens: 1}},
		{"the end is missing", probs, true, saw{Content: "a", Tokens: 1, Cut: true, Faces: []string{FaceTransport}}},
		{"nothing but a comment", ": ping\n\n", true, saw{Cut: true, Faces: []string{FaceTransport}}},
		{"null log-probability", strings.Replace(probs, `"logprob":-0.5,"top`, `"logprob":null,"top`, 1) + last, true,
			saw{Content: "a", Tokens: 1, Faces: []string{FaceNaN}}},
		{"log-probabilities missing", `data: {"content":"a"}` + "\n\n" + last, true, saw{Content: "a", Tokens: 1, Faces: []string{FaceNotObserved}}},
		{"bare NaN", strings.Replace(probs, `"logprob":-0.5,"top`, `"logprob":-nan,"top`, 1) + last, false,
			saw{Content: "a", Tokens: 1, Faces: []string{FaceNaN, FaceJSON}}},
		{"carriage returns", strings.ReplaceAll(probs+last, "\n", "\r"), true, saw{Content: "a", Tokens: 1}},
		{"both line ends and a byte order mark", "\ufeff" + strings.ReplaceAll(probs+last, "\n", "\r\n"), true, saw{Content: "a", Tokens: 1}},
		{"data in several lines", "data: {\"content\":\"a\",\ndata: \"stop\":\ndata: true}\n\n", false, saw{Content: "a"}},
		{"a field without colon, ids, unknown ones", "id: 7\nretry: 9\ndata\nwhat: else\n" + probs + last, true, saw{Content: "a", Tokens: 1}},
		{"last empty line missing", `data: {"content":"a","stop":true}` + "\n", false, saw{Content: "a"}},
		{"last line end missing", `data: {"content":"a","stop":true}`, false, saw{Content: "a"}},
		{"half an event after the end", last + `data: {"con`, false, saw{Tokens: 1, Cut: true, Faces: []string{FaceTransport}}},
		{"an event that is no JSON", "data: Internal error\n\n" + last, false, saw{Tokens: 1, Faces: []string{FaceJSON}}},
		{"an event by the name of error", "event: error\ndata: {\"message\":\"gone\"}\n\n", false, saw{Cut: true, Faces: []string{FaceStatus}}},
		{"context exceeded", `data: {"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}` + "\n\n", true,
			saw{Cut: true, Faces: []string{FaceContext}}},
		{"an error and more", "error: {\"code\":1}\n\n" + probs + last, true, saw{Content: "a", Tokens: 1, Faces: []string{FaceStatus}}},
		{"several lines with both line ends", "data: {\"content\":\"a\",\r\ndata: \"stop\":true}\r\n\r\n", false, saw{Content: "a"}},
		{"only the end mark", "data: [DONE]\n\n", false, saw{Faces: []string{FaceJSON}}},
		{"finished without an end mark", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}` + "\n\n", false, saw{Content: "a"}},
		{"a character cut by the limit", "data: {\"content\":\"a\xe5\x8d\"}\n\n" + last, false, saw{Content: "a\uFFFD\uFFFD", Tokens: 1}},
		{"a character cut before the last text", "data: {\"content\":\"a\xe5\x8d\"}\n\ndata: {\"content\":\"b\"}\n\n" + last, false,
			saw{Content: "a\uFFFD\uFFFDb", Tokens: 1, Faces: []string{FaceUTF8}}},
		{"thought and said", `data: {"choices":[{"delta":{"reasoning_content":"hm, "}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}` + "\n\n", false,
			saw{Content: "hm, yes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := seen(ParseAnswer(200, []byte(tt.raw), tt.asked))
			got.Detail = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	a := ParseAnswer(200, []byte(probs+last), true)
	if a.SlotID != 3 || a.Events != 2 || !a.StoppedAtLimit || a.TokensEvaluated != 9 || !cmp.Equal(a.TokenIDs, []int{5}) ||
		len(a.Tokens) != 1 || *a.Tokens[0].Logprob != -0.5 || *a.Tokens[0].TopGap != 1.5 || string(a.Tokens[0].Bytes) != "a" {
		t.Errorf("read %+v", a)
	}
}

// What an answer says does not depend on the pieces in which it came.
func FuzzStreamPieces(f *testing.F) {
	f.Add([]byte("data: {\"content\":\"中\"}\r\n\r\ndata: {\"content\":\"b\",\"stop\":true}\r\r: x\n\n"), uint64(3))
	f.Add([]byte("\ufeffdata: {\ndata: \"content\":\"a\"}\n\nevent: error\ndata: x\n\ndata: [DONE]"), uint64(77))
	f.Add([]byte("error: {\"code\":400}\n\ndata: {\"choices\":[{\"del"), uint64(1<<63))
	f.Fuzz(func(t *testing.T, raw []byte, cuts uint64) {
		if !isEventStream(raw) {
			return
		}
		whole := ParseAnswer(200, raw, true)
		s := stream{answer: newAnswer(200, true)}
		for n, bit := 0, 0; n < len(raw); bit = (bit + 1) % 64 {
			if n++; cuts>>bit&1 == 1 {
				s.feed(raw[:n], false)
			}
		}
		s.feed(raw, true)
		a := s.answer
		if diff := cmp.Diff(seen(whole), seen(a)); diff != "" || whole.Events != a.Events || len(whole.Tokens) != len(a.Tokens) || whole.InBand != a.InBand {
			t.Fatalf("(-whole +pieces):\n%s", diff)
		}
		if !utf8.ValidString(a.Content) {
			t.Fatal("content that is no UTF-8")
		}
	})
}
