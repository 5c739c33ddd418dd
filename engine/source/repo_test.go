package source_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/engine/source"
)

// repo is a real repository that a test makes.
type repo struct {
	t    *testing.T
	dir  string
	tick int
}

func newRepo(t *testing.T, flags ...string) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatalf("git is needed: %v", err)
		}
		t.Skipf("git is needed: %v", err)
	}
	r := &repo{t: t, dir: t.TempDir()}
	r.git(append([]string{"init", "-q", "-b", "main"}, flags...)...)
	return r
}

func (r *repo) at(dir string) *repo { return &repo{r.t, dir, r.tick} }

// git runs a command, each a minute later than the one before.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func (r *repo) try(args ...string) (string, error) {
	r.tick++
	date := strconv.Itoa(1790000000+60*r.tick) + " +0200"
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.org",
		"GIT_EDITOR=true", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *repo) write(name, content string) {
	r.t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// commit writes a file and commits everything; the message may be several paragraphs.
func (r *repo) commit(name, content, message string) string {
	r.t.Helper()
	r.write(name, content)
	return r.commitAll(message)
}

func (r *repo) commitAll(message string) string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.head()
}

func (r *repo) head() string { return r.git("rev-parse", "HEAD") }

func (r *repo) revert(commit string, flags ...string) string {
	r.t.Helper()
	r.git(append(append([]string{"revert", "--no-edit"}, flags...), commit)...)
	return r.head()
}

func (r *repo) pick(commit string, flags ...string) string {
	r.t.Helper()
	r.git(append(append([]string{"cherry-pick"}, flags...), commit)...)
	return r.head()
}

func (r *repo) open() *source.Checkout {
	r.t.Helper()
	c, err := source.Open(context.Background(), r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// text is a file whose lines are far enough apart for changes in several
// places to be separate.
func text(lines ...string) string {
	return strings.Join(lines, "\na\nb\nc\nd\n") + "\n"
}
