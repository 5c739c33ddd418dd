package realengine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trialTime bounds each part of a trial. A start takes 30 ms and a completion less.
const trialTime = 30 * time.Second

// try sees that every program of the tree starts on this machine and that the server answers a completion.
func try(ctx context.Context, tree *Tree) error {
	ctx, cancel := context.WithTimeout(ctx, 2*trialTime)
	defer cancel()
	for _, name := range Programs() {
		flag := "--help"
		if name == "llama-server" {
			flag = "--version"
		}
		out, err := exec.CommandContext(ctx, tree.Program(name), flag).CombinedOutput()
		// test-backend-ops calls its own usage text a failure.
		if !startedUp(err) || name == "llama-server" && err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, flag, err, lastLine(out))
		}
	}
	var err error
	for range 3 { // another process may take the free port before the server does
		if err = tryCompletion(ctx, tree); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// startedUp tells whether a program that ended with err had started: the loader exits with 127 and a
// processor that lacks an instruction ends it by a signal.
func startedUp(err error) bool {
	var exit *exec.ExitError
	return err == nil || errors.As(err, &exit) && exit.Exited() && exit.ExitCode() != 126 && exit.ExitCode() != 127
}

func tryCompletion(ctx context.Context, tree *Tree) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	log, err := os.CreateTemp(filepath.Dir(tree.Dir), "trial-*.log")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	server := exec.Command(tree.FrontEnd(), "serve", "-m", tree.Model(Plain), "--device", "none", "--host", "127.0.0.1",
		"--port", strconv.Itoa(port), "--ctx-size", "512", "--parallel", "1", "--threads", "1")
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	server.Env = append(os.Environ(), "ONEBIT_LLAMA_SERVER="+tree.Program("llama-server"))
	if err := server.Start(); err != nil {
		return fmt.Errorf("start llama-server: %w", err)
	}
	ended := make(chan struct{})
	go func() { server.Wait(); close(ended) }()
	defer func() {
		syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		<-ended
	}()
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	base := "http://127.0.0.1:" + strconv.Itoa(port)
	for {
		status, _, err := ask(ctx, http.MethodGet, base+"/health", "")
		if err == nil && status == http.StatusOK {
			break
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("start llama-server: it does not get ready: %s", lastLine(text))
		case <-time.After(20 * time.Millisecond):
		}
	}
	status, body, err := ask(ctx, http.MethodPost, base+"/completion", `{"prompt":"hello","n_predict":4,"temperature":0}`)
	if err != nil {
		return fmt.Errorf("ask llama-server for a completion: %w", err)
	}
	var answer struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || answer.Content == "" {
		return fmt.Errorf("ask llama-server for a completion: status %d, body %.200q", status, body)
	}
	return nil
}

func ask(ctx context.Context, method, url, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	// The server is on this machine: no proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// freePort returns a TCP port that nothing listened on a moment ago.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}
