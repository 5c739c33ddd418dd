package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// readReply reads a whole reply.
func readReply(raw string) (replyHead, string, error) {
	r := bufio.NewReaderSize(strings.NewReader(raw), maxLine)
	h, err := readReplyHead(r)
	if err != nil {
		return h, "", err
	}
	body, err := readBody(r, h, nil)
	return h, string(body), err
}

func TestReply(t *testing.T) {
	tests := []struct {
		raw  string
		want string // status, whether the connection closes, body; or the error
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcd", "200 false ab"},
		{"HTTP/1.1 200\nCONTENT-LENGTH:2\n\nab", "200 false ab"},
		{"HTTP/1.1 200 OK\r\n\r\nto the end", "200 true to the end"},
		{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", "200 true ab"},
		{"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nab", "200 false ab"},
		{"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nab", "200 true ab"},
		{"HTTP/1.1 204 Nothing\r\n\r\nabc", "204 false "},
		{"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "503 false "},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 9\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nTrailer: x\r\n\r\n", "200 false abc"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "unexpected EOF"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na", "unexpected EOF"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n", "unexpected EOF"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "invalid byte in chunk length"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", `Transfer-Encoding is not known: "gzip"`},
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", `Content-Length makes no sense: "4"`},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", `Content-Length makes no sense: "-1"`},
		{"HTTP/1.1 101 Other\r\n\r\n", "another protocol"},
		{"HTTP/2 200 OK\r\n\r\n", `no HTTP/1 answer: "HTTP/2 200 OK"`},
		{"HTTP/1.1 20 OK\r\n\r\n", "no HTTP/1 answer"},
		{"SSH-2.0-x\r\n", "no HTTP/1 answer"},
		{"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", `malformed: "no colon"`},
		{"HTTP/1.1 200 OK\r\n a: folded\r\n\r\n", "malformed"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "unexpected EOF"},
		{"", "unexpected EOF"},
		{"HTTP/1.1 200 OK\r\nx: " + strings.Repeat("x", maxLine), "header of the answer"},
		{"HTTP/1.1 200 OK\r\n" + strings.Repeat("x: y\r\n", maxHeader/6), "header of the answer"},
	}
	for _, tt := range tests {
		h, body, err := readReply(tt.raw)
		got := fmt.Sprint(h.status, " ", h.close, " ", body)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) || err == nil && got != tt.want {
			t.Errorf("%.60q: %q, want %q", tt.raw, got, tt.want)
		}
	}
}

// What the reader makes of a reply is what net/http makes of it.
func FuzzReply(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nabcd"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 404 No\n\nrest"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, body, err := readReply(string(raw))
		if err != nil {
			return
		}
		if bytes.Contains(raw, []byte("HTTP/1.1 1")) || h.status == 204 || h.status == 304 {
			return // net/http gives those that only announce another to its caller
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
		if err != nil {
			return // it is stricter
		}
		want, err := io.ReadAll(resp.Body)
		if err == nil && (resp.StatusCode != h.status || string(want) != body) {
			t.Fatalf("%d %q, net/http reads %d %q", h.status, body, resp.StatusCode, want)
		}
	})
}
