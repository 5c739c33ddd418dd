package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxIdle is how long a connection may wait for its next request. Servers
// close one after five seconds; a request that is sent at that moment would
// look like a fault.
const maxIdle = time.Second

// A conn is one connection to the server.
type conn struct {
	net.Conn
	r     *bufio.Reader
	raw   syscall.RawConn // nil: not asked for yet
	timer *time.Timer     // ends the connection when it has idled too long
	head  []byte          // reused
}

// idleConns are the connections that wait for a request, the last used last.
type idleConns struct {
	mu   sync.Mutex
	free []*conn
}

// A CutError says that a reply's header came and its body did not, or not all
// of it.
type CutError struct {
	Status int
	Raw    []byte // of the body, what came
	Err    error
}

func (e *CutError) Error() string {
	return fmt.Sprintf("read the answer, status %d, after %d bytes: %v", e.Status, len(e.Raw), e.Err)
}

// Unwrap gives the connection's error, or the context's.
func (e *CutError) Unwrap() error { return e.Err }

// exchange sends one request and reads the reply. Nothing is ever sent twice.
// first, if given, watches the body come.
func (c *Client) exchange(ctx context.Context, method, path string, body []byte, first *firstToken) (status int, raw []byte, err error) {
	host, prefix, err := c.address()
	if err != nil {
		return 0, nil, err
	}
	what := strings.ToLower(method) + " " + c.BaseURL + path
	// The connection's own error is only how the end of the context shows.
	cause := func(err error) error { return cmp.Or(ctx.Err(), err) }
	conn, err := c.conn(ctx, host)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: connect: %w", what, cause(err))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	keep := false
	defer func() {
		if stop() && keep {
			c.idle.put(conn)
			return
		}
		_ = conn.Close()
	}()
	// A server may refuse a request before it has read all of it and close the
	// connection, so that its answer is read even if sending failed.
	sendErr := conn.send(c, method, host, prefix+path, body)
	if first != nil {
		first.sent = time.Now()
	}
	head, err := readReplyHead(conn.r)
	if err != nil {
		if sendErr != nil {
			return 0, nil, fmt.Errorf("%s: send: %w", what, cause(sendErr))
		}
		return 0, nil, fmt.Errorf("%s: wait for an answer: %w", what, cause(err))
	}
	raw, err = readBody(conn.r, head, first)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", what, &CutError{head.status, raw, cause(err)})
	}
	if extra := conn.behind(); body != nil && len(extra) > 0 {
		return 0, nil, fmt.Errorf("%s: %w", what, &CutError{head.status, raw, fmt.Errorf("%w: %s", errBehind, excerpt(extra))})
	}
	keep = c.Reuse && sendErr == nil && !head.close && conn.r.Buffered() == 0
	return head.status, raw, nil
}

// address takes the base URL apart.
func (c *Client) address() (host, prefix string, err error) {
	rest, plain := strings.CutPrefix(c.BaseURL, "http://")
	host, prefix, _ = strings.Cut(rest, "/")
	if prefix = strings.TrimSuffix(prefix, "/"); prefix != "" {
		prefix = "/" + prefix
	}
	if !plain || host == "" || strings.ContainsAny(c.BaseURL, " \t\r\n?#@") {
		return "", "", fmt.Errorf("server address %q: want one such as http://127.0.0.1:8080", c.BaseURL)
	}
	if strings.ContainsAny(c.Key, "\r\n") {
		return "", "", errors.New("the API key has a line break")
	}
	return host, prefix, nil
}

// conn gives a connection: one that idles and is still good, else a new one.
func (c *Client) conn(ctx context.Context, host string) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for known := c.idle.take(); known != nil; known = c.idle.take() {
		if known.quiet() {
			return known, nil
		}
		_ = known.Close()
	}
	nc, err := dial(ctx, host)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc, r: bufio.NewReaderSize(nc, maxLine)}, nil
}

// dial opens a connection. One to an address takes half of the processor time
// of one to a name.
//
// The dialler would time out by the context's deadline a moment before the
// context is over, and what has run out of time would look like a server that
// cannot be reached: so only the end of the context ends it.
func dial(ctx context.Context, host string) (net.Conn, error) {
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, end)()
	ctx = over
	d := net.Dialer{KeepAlive: -1} // the context bounds every wait
	if address, err := netip.ParseAddrPort(host); err == nil {
		c, err := d.DialTCP(ctx, "tcp", netip.AddrPort{}, address)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	if _, port, _ := strings.Cut(host[strings.LastIndexByte(host, ']')+1:], ":"); port == "" {
		host = strings.TrimSuffix(host, ":") + ":80"
	}
	return d.DialContext(ctx, "tcp", host)
}

// take gives the connection that was used last, nil if none is left.
func (i *idleConns) take() *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.free) > 0 {
		last := len(i.free) - 1
		c := i.free[last]
		i.free[last] = nil
		i.free = i.free[:last]
		if c.timer.Stop() {
			return c
		}
	}
	return nil
}

func (i *idleConns) put(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.timer == nil {
		c.timer = time.AfterFunc(maxIdle, func() { i.drop(c) })
	} else {
		c.timer.Reset(maxIdle)
	}
	i.free = append(i.free, c)
}

// drop closes a connection that has idled too long.
func (i *idleConns) drop(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, other := range i.free {
		if other == c {
			i.free = append(i.free[:n], i.free[n+1:]...)
			break
		}
	}
	_ = c.Close()
}

// quiet tells whether a connection is open and nothing has come unasked: the
// server may have ended, or closed it.
func (c *conn) quiet() bool {
	if c.raw == nil {
		raw, err := c.Conn.(syscall.Conn).SyscallConn()
		if err != nil {
			return false
		}
		c.raw = raw
	}
	quiet := false
	var b [1]byte
	err := c.raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = n < 0 && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK))
		return true
	})
	return err == nil && quiet
}

// errBehind says that an answer is longer than its header says, or that another
// one follows which nobody has asked for: it may be somebody else's.
var errBehind = errors.New("more bytes came behind the answer")

// behind gives what came with an answer and is not part of it, but for line
// ends, which mean nothing. It does not wait for more.
func (c *conn) behind() []byte {
	extra, _ := c.r.Peek(c.r.Buffered()) // it is there
	return bytes.Trim(extra, "\r\n")
}

// send writes a request. The body is not copied.
func (c *conn) send(client *Client, method, host, path string, body []byte) error {
	h := append(c.head[:0], method...)
	h = append(append(h, ' '), path...)
	h = append(append(h, " HTTP/1.1\r\nHost: "...), host...)
	h = append(h, "\r\nUser-Agent: 1bit\r\n"...)
	if client.Key != "" {
		h = append(append(append(h, "Authorization: Bearer "...), client.Key...), "\r\n"...)
	}
	if !client.Reuse {
		h = append(h, "Connection: close\r\n"...)
	}
	if body != nil {
		h = append(h, "Content-Type: application/json\r\nContent-Length: "...)
		h = append(strconv.AppendInt(h, int64(len(body)), 10), "\r\n"...)
	}
	c.head = append(h, "\r\n"...)
	if len(body) <= 4<<10 {
		c.head = append(c.head, body...)
		_, err := c.Conn.Write(c.head)
		return err
	}
	pieces := net.Buffers{c.head, body}
	_, err := pieces.WriteTo(c.Conn)
	return err
}
