package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// wire is a server that answers by hand. It counts connections and requests.
type wire struct {
	client      *Client
	connections atomic.Int32
	requests    atomic.Int32
}

// newWire calls answer for every request with its number; what it returns is
// written as it is, and false closes the connection.
func newWire(t *testing.T, answer func(n int, r *http.Request, w net.Conn) bool) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &wire{client: &Client{BaseURL: "http://" + l.Addr().String(), Reuse: true}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if !answer(int(s.requests.Add(1)), r, c) {
						return
					}
				}
			}()
		}
	}()
	return s
}

const soundBody = `{"content":"x","tokens_predicted":1}`

func reply(w net.Conn, header, body string) {
	fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s", len(body), header, body)
}

func (s *wire) complete(t *testing.T) (*Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return s.client.Complete(ctx, CompletionRequest{Prompt: "p", Stream: true})
}

func TestConnectionIsUsedAgain(t *testing.T) {
	s := newWire(t, func(_ int, _ *http.Request, w net.Conn) bool {
		reply(w, "", soundBody)
		return true
	})
	for range 5 {
		if _, err := s.complete(t); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections for five requests", n)
	}
	s.client.idle.free[0].timer.Reset(0)
	waitFor(t, "the end of a connection that idles", func() bool {
		s.client.idle.mu.Lock()
		defer s.client.idle.mu.Unlock()
		return len(s.client.idle.free) == 0
	})
	s.client.Reuse = false
	for range 2 {
		if _, err := s.complete(t); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.connections.Load(); n != 3 || len(s.client.idle.free) > 0 {
		t.Errorf("%d connections, %d of them idle; want 3, none kept", n, len(s.client.idle.free))
	}
}

// nothingUsable tells whether no connection idles that may be used again.
func (c *Client) nothingUsable() bool {
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	return !slices.ContainsFunc(c.idle.free, (*conn).quiet)
}

// Whatever the server does to a connection that idles is no fault of the next
// request.
func TestConnectionThatIsOverIsNotUsed(t *testing.T) {
	// Each acts; read tells it that the client has read the answer.
	tests := map[string]func(w net.Conn, read <-chan struct{}) bool{
		"says that it closes": func(w net.Conn, _ <-chan struct{}) bool {
			reply(w, "Connection: close\r\n", soundBody)
			return true
		},
		"closes": func(w net.Conn, _ <-chan struct{}) bool { reply(w, "", soundBody); return false },
		"resets": func(w net.Conn, read <-chan struct{}) bool {
			reply(w, "", soundBody)
			<-read
			w.(*net.TCPConn).SetLinger(0)
			return false
		},
		"says more later": func(w net.Conn, read <-chan struct{}) bool {
			reply(w, "", soundBody)
			<-read // else it is behind the answer, see below
			io.WriteString(w, "HTTP/1.1 500 Oh\r\n\r\n")
			return true
		},
		"speaks HTTP/1.0": func(w net.Conn, _ <-chan struct{}) bool {
			io.WriteString(w, "HTTP/1.0 200 OK\r\n\r\n"+soundBody)
			return false
		},
	}
	for name, act := range tests {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{}, 3)
			s := newWire(t, func(_ int, _ *http.Request, w net.Conn) bool { return act(w, read) })
			for n := range 3 {
				a, err := s.complete(t)
				if err != nil || string(a.Raw) != soundBody {
					t.Fatalf("request %d: %v", n, err)
				}
				read <- struct{}{}
				waitFor(t, "the connection's end to arrive", s.client.nothingUsable)
			}
			if n := s.requests.Load(); n != 3 {
				t.Errorf("%d requests arrived, want 3", n)
			}
			if n := s.connections.Load(); n != 3 {
				t.Errorf("%d connections, want 3", n)
			}
		})
	}
}

// A request is sent once, whatever becomes of it, also on a connection that
// served before.
func TestNothingIsSentTwice(t *testing.T) {
	const soon = 2 * time.Second // for the request to arrive, and the part of the answer, on a busy machine too
	part := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n20\r\ndata: {\"content\":\"ab\",\"stop\":f"
	tests := []struct {
		name  string
		act   func(w net.Conn) bool
		limit time.Duration // of the request
		want  error
		cut   string // what of the body had come
	}{
		{"closes without a word", func(net.Conn) bool { return false }, time.Minute, io.ErrUnexpectedEOF, ""},
		{"resets", func(w net.Conn) bool { w.(*net.TCPConn).SetLinger(0); return false }, time.Minute, syscall.ECONNRESET, ""},
		{"never answers", func(net.Conn) bool { return true }, soon, context.DeadlineExceeded, ""},
		{"closes in mid-header", func(w net.Conn) bool { io.WriteString(w, "HTTP/1.1 200 OK\r\n"); return false }, time.Minute, io.ErrUnexpectedEOF, ""},
		{"closes in mid-body", func(w net.Conn) bool { io.WriteString(w, part); return false }, time.Minute, io.ErrUnexpectedEOF, part[len(part)-30:]},
		{"stops in mid-body", func(w net.Conn) bool { io.WriteString(w, part); return true }, soon, context.DeadlineExceeded, part[len(part)-30:]},
		{"says 307", func(w net.Conn) bool {
			io.WriteString(w, "HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")
			return true
		}, time.Minute, nil, ""},
		{"says 503 and when to come again", func(w net.Conn) bool {
			io.WriteString(w, "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")
			return true
		}, time.Minute, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newWire(t, func(n int, _ *http.Request, w net.Conn) bool {
				if n == 1 {
					reply(w, "", soundBody)
					return true
				}
				return tt.act(w)
			})
			if _, err := s.complete(t); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
			defer cancel()
			a, err := s.client.Complete(ctx, CompletionRequest{Prompt: "p", Stream: true})
			if !errors.Is(err, tt.want) || (a == nil) != (err != nil) {
				t.Errorf("answer %v, error %v; want %v", a, err, tt.want)
			}
			var cut *CutError
			if errors.As(err, &cut); tt.cut != "" && (cut == nil || string(cut.Raw) != tt.cut || cut.Status != 200) || tt.cut == "" && cut != nil {
				t.Errorf("cut %+v, want %q", cut, tt.cut)
			}
			if n, c := s.requests.Load(), s.connections.Load(); n != 2 || c != 1 {
				t.Errorf("%d requests on %d connections, want 2 on 1", n, c)
			}
		})
	}
}

func TestRequestIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newWire(t, func(int, *http.Request, net.Conn) bool { cancel(); return true })
	if _, err := s.client.Complete(ctx, CompletionRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if _, err := s.client.Complete(ctx, CompletionRequest{}); !errors.Is(err, context.Canceled) || s.requests.Load() != 1 {
		t.Errorf("given up before: %v, %d requests", err, s.requests.Load())
	}
}

func TestBytesOnTheWire(t *testing.T) {
	requests := make(chan *http.Request, 1)
	s := newWire(t, func(_ int, r *http.Request, w net.Conn) bool {
		requests <- r
		io.WriteString(w, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
		io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"c\r\n21\r\nontent\":\"\xff\",\"tokens_predicted\":1}\r\n0\r\n\r\n")
		return true
	})
	s.client.BaseURL += "/prefix/"
	s.client.Key = "secret"
	a, err := s.complete(t)
	if err != nil || string(a.Raw) != "{\"content\":\"\xff\",\"tokens_predicted\":1}" {
		t.Errorf("%q, %v", a.Raw, err)
	}
	got := <-requests
	if got.URL.Path != "/prefix/completion" || got.Header.Get("Authorization") != "Bearer secret" || got.Header.Get("Accept-Encoding") != "" ||
		got.Header.Get("Content-Type") != "application/json" || got.Host == "" || got.Close {
		t.Errorf("sent %+v", got)
	}
	for _, bad := range []string{"127.0.0.1:80", "https://127.0.0.1", "http://", "http://a b", "http://a/\r\nX: y", "http://u@h"} {
		if _, err := (&Client{BaseURL: bad}).Health(t.Context()); err == nil || !strings.Contains(err.Error(), "server address") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := (&Client{BaseURL: "http://127.0.0.1:1", Key: "a\r\nb"}).Health(t.Context()); err == nil || !strings.Contains(err.Error(), "line break") {
		t.Errorf("a key of two lines: %v", err)
	}
}

func TestTooLong(t *testing.T) {
	s := newWire(t, func(n int, _ *http.Request, w net.Conn) bool {
		if n == 1 {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", maxHeader)+"\r\n\r\n")
			return false
		}
		fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", maxBody+1)
		return false
	})
	for _, want := range []string{"header of the answer has more", "answer has more than 67108864 bytes"} {
		if _, err := s.complete(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A server may answer before it has read the request.
func TestRefusedWhileSending(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
	}))
	defer srv.Close()
	c := &Client{BaseURL: srv.URL}
	a, err := c.Complete(t.Context(), CompletionRequest{Prompt: strings.Repeat("x", 8<<20)})
	if err != nil || a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v, %v", a, err)
	}
}

// What comes behind an answer may be somebody else's: it is told, and the bytes
// of the answer are kept. Line ends mean nothing.
func TestBytesBehindTheAnswer(t *testing.T) {
	const body = `{"content":"a","tokens_predicted":1}`
	for behind, want := range map[string]string{
		"":         "",
		"\r\n":     "",
		"xyz":      `more bytes came behind the answer: "xyz"`,
		"\r\n{\"c": `more bytes came behind the answer: "{\"c"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}": `more bytes came behind the answer: "HTTP/1.1 200 OK`,
	} {
		for _, chunked := range []bool{false, true} {
			s := newWire(t, func(_ int, _ *http.Request, w net.Conn) bool {
				if chunked {
					fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n%s", len(body), body, behind)
				} else {
					fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s%s", len(body), body, behind)
				}
				return true
			})
			a, err := s.complete(t)
			if want == "" {
				if err != nil || a.Content != "a" {
					t.Errorf("%q: %v", behind, err)
				}
				continue
			}
			var cut *CutError
			if !errors.As(err, &cut) || cut.Status != 200 || string(cut.Raw) != body || !strings.Contains(err.Error(), want) {
				t.Errorf("%q, chunked %v: %v", behind, chunked, err)
			}
		}
	}
}

// A connection that its context's deadline catches has run out of time; it never
// looks like a server that cannot be reached.
func TestDeadlineWhileConnecting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 3000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%60)*time.Microsecond)
		_, _, err := (&Client{BaseURL: "http://" + l.Addr().String()}).exchange(ctx, "GET", "/health", nil, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
}
