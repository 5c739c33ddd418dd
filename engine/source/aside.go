package source

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// aside is a repository of our own, made for one question, with the checkout's
// objects and nothing else of it: no configuration, so that no filter or merge
// driver of the checkout can run, and a place of its own for what git writes.
type aside struct {
	c   *Checkout
	dir string
}

// aside makes one whose HEAD is the commit. The caller closes it.
func (c *Checkout) aside(ctx context.Context, head string) (*aside, error) {
	out, err := c.git(ctx, nil, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return nil, fmt.Errorf("find the objects: %w", err)
	}
	objects := strings.TrimSuffix(string(out), "\n")
	dir, err := os.MkdirTemp("", "1bit-source-")
	if err != nil {
		return nil, fmt.Errorf("make a repository for questions about %s: %w", c.Dir, err)
	}
	a := &aside{c, dir}
	config := "[core]\n\trepositoryformatversion = 1\n"
	if len(head) == 64 {
		config += "[extensions]\n\tobjectformat = sha256\n"
	}
	files := map[string]string{"HEAD": head + "\n", "config": config, "objects/info/alternates": "../store\n"}
	if len(c.edges) > 0 {
		files["shallow"] = strings.Join(slices.Sorted(maps.Keys(c.edges)), "\n") + "\n"
	}
	if err := a.fill(objects, files); err != nil {
		a.close()
		return nil, fmt.Errorf("make a repository for questions about %s: %w", c.Dir, err)
	}
	return a, nil
}

func (a *aside) fill(objects string, files map[string]string) error {
	for _, name := range []string{"refs", "info", "objects/info"} {
		if err := os.MkdirAll(filepath.Join(a.dir, name), 0o700); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	// A link, since a list of alternates has its own ways with odd names.
	return os.Symlink(objects, filepath.Join(a.dir, "store"))
}

// close removes it; what stays behind is in the folder for temporary files.
func (a *aside) close() { _ = os.RemoveAll(a.dir) }

// git runs one command in it, on the checkout's files if it looks at any.
func (a *aside) git(ctx context.Context, args ...string) ([]byte, error) {
	out, _, err := a.c.run(ctx, []string{"GIT_DIR=" + a.dir, "GIT_WORK_TREE=" + a.c.Dir}, nil, args...)
	return out, err
}

// remerge merges two commits as git does without help, and returns the tree;
// where they conflict it holds the marks of that. It is "" if git cannot.
func (a *aside) remerge(ctx context.Context, one, other string) (string, error) {
	out, code, err := a.c.run(ctx, []string{"GIT_DIR=" + a.dir, "GIT_WORK_TREE=" + a.dir}, nil,
		"-c", "merge.renormalize=false", "-c", "merge.renames=true", "merge-tree", "--write-tree", "--name-only", "--no-messages", one, other)
	if code > 0 && code != 1 {
		return "", nil
	}
	if err != nil && code != 1 {
		return "", fmt.Errorf("merge %s and %s again: %w", short(one), short(other), err)
	}
	tree, _, _ := strings.Cut(string(out), "\n")
	if !fullPattern().MatchString(tree) {
		return "", nil
	}
	return tree, nil
}
