package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// The oldest git whose patch ids tell binary files apart.
const gitMajor, gitMinor = 2, 39

// settings come before every command: nothing of the repository's own
// configuration may run a program or change the form of an answer.
var settings = []string{
	"--no-pager", "--literal-pathspecs", "--no-replace-objects", "--no-optional-locks",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=true",
	"-c", "core.commitGraph=false", "-c", "color.ui=false", "-c", "advice.graftFileDeprecated=false",
	"-c", "protocol.allow=never", "-c", "i18n.logOutputEncoding=UTF-8", "-c", "i18n.commitEncoding=UTF-8",
}

// kept are the variables GIT_… that say where git and the user's own
// configuration are.
var kept = []string{"GIT_EXEC_PATH=", "GIT_CONFIG_GLOBAL=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM="}

// environment makes git's environment out of the one it would inherit.
func environment(inherited []string) []string {
	var env []string
	for _, v := range inherited {
		if strings.HasPrefix(v, "GIT_") && !hasAnyPrefix(v, kept) || strings.HasPrefix(v, "LC_") || strings.HasPrefix(v, "LANGUAGE=") {
			continue
		}
		env = append(env, v)
	}
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_GRAFT_FILE=/dev/null")
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// gitError is an answer of git that is not a result.
type gitError struct {
	command string
	dir     string
	code    int // exit status; -1 if a signal ended it
	message string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s in %s: %s", e.command, e.dir, e.message)
}

// git runs one command in the checkout and returns what it prints.
func (c *Checkout) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	out, code, err := c.run(ctx, nil, stdin, args...)
	if code != 0 {
		return nil, err
	}
	return out, err
}

// run is git with more variables; what a command printed that ends with another
// exit status than 0 comes with the status and the error.
func (c *Checkout) run(ctx context.Context, env []string, stdin []byte, args ...string) (out []byte, code int, err error) {
	cmd := exec.CommandContext(ctx, "git", append(settings[:len(settings):len(settings)], args...)...)
	cmd.Dir = c.Dir
	cmd.Env = append(environment(cmd.Environ()), env...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, 0, fmt.Errorf("git %s in %s: %w", args[0], c.Dir, ctx.Err())
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return stdout.Bytes(), 0, nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, 0, fmt.Errorf("ask git about %s: git is not installed: install it, or leave the source out: %w", c.Dir, err)
	case errors.As(err, &exit):
		return stdout.Bytes(), exit.ExitCode(), &gitError{args[0], c.Dir, exit.ExitCode(), explain(stderr.String(), exit)}
	}
	return nil, 0, fmt.Errorf("run git in %s: %w", c.Dir, err)
}

// explain passes on git's own words with what to do.
func explain(stderr string, exit *exec.ExitError) string {
	message, remedy := "", ""
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if message == "" || strings.HasPrefix(line, "fatal: ") && !strings.HasPrefix(message, "fatal: ") {
			message = line
		}
		if strings.HasPrefix(line, "git config --global --add safe.directory ") {
			remedy = "if you trust it: " + line
		}
	}
	message = strings.TrimPrefix(strings.TrimPrefix(message, "fatal: "), "error: ")
	if message == "" {
		return exit.String()
	}
	if strings.HasPrefix(message, "not a git repository") {
		remedy = "name the folder of a checkout"
	}
	if remedy != "" {
		message += ": " + remedy
	}
	return message
}

// refused tells whether git itself answered with this exit status.
func refused(err error, code int) bool {
	var g *gitError
	return errors.As(err, &g) && g.code == code
}

var versionPattern = lazyregexp.New(`^git version ([0-9]{1,4})\.([0-9]{1,4})`)

// checkVersion refuses a git that is too old to be relied on.
func (c *Checkout) checkVersion(ctx context.Context) error {
	out, err := c.git(ctx, nil, "version")
	if err != nil {
		return err
	}
	m := versionPattern().FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("ask git for its version: it says %q, which is not understood", strings.TrimSpace(string(out)))
	}
	major, _ := strconv.Atoi(string(m[1])) // at most four digits
	minor, _ := strconv.Atoi(string(m[2]))
	if major < gitMajor || major == gitMajor && minor < gitMinor {
		return fmt.Errorf("git is version %d.%d, and %d.%d is needed, the first whose patch ids tell binary files apart: install a newer one",
			major, minor, gitMajor, gitMinor)
	}
	return nil
}
