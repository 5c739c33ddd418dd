package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// ErrExited says that a server ended before it was ready.
var ErrExited = errors.New("server ended before it was ready")

// ServerOptions say how to start a llama-server.
type ServerOptions = ProcessOptions

// A Server is a running llama-server. Stop ends it with everything it started.
type Server struct{ *Process }

// StartServer starts a llama-server. The context bounds the start alone.
func StartServer(ctx context.Context, o ServerOptions) (*Server, error) {
	p, err := StartProcess(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Server{p}, nil
}

// WaitReady waits until the server takes requests. The error wraps ErrExited if the
// server ended first, and the context's error if the model took too long.
func (s *Server) WaitReady(ctx context.Context, c *Client) error {
	const first, most = 10 * time.Millisecond, 200 * time.Millisecond
	for pause := first; ; pause = min(2*pause, most) {
		if ready, err := c.Ready(ctx); err == nil && ready {
			return nil
		}
		select {
		case <-s.Exited():
			return fmt.Errorf("%w: %s", ErrExited, s.status)
		case <-ctx.Done():
			return fmt.Errorf("wait until %s takes requests: %w", c.BaseURL, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// FreePort picks a loopback port that was free a moment ago. Port 0 means
// nothing to llama-server, so another process may still take the port first: a
// server then ends at once and its log has a LogBind line.
func FreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pick a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Version runs `program --version` and returns what follows "version: ", such
// as "10605 (86c33b5d5)".
func Version(ctx context.Context, program string, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env = env
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s --version: %w: %s", program, err, excerpt(out))
	}
	return parseVersion(program, out)
}

func parseVersion(program string, out []byte) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if v, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("read version of %s: no line begins with version: %s", program, excerpt(out))
}
