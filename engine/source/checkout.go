package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// ErrIncomplete is wrapped where a checkout does not hold the history that an
// answer needs. Fetching it helps.
var ErrIncomplete = errors.New("not all of the history is in this checkout")

var (
	fullPattern   = lazyregexp.New(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	prefixPattern = lazyregexp.New(`^[0-9a-f]{4,64}$`)
)

// Checkout is a git repository on disk, with a work tree or bare.
type Checkout struct {
	// Dir is its folder, absolute.
	Dir string

	bare bool
	// edges are the commits whose parents a shallow clone left out.
	edges map[string]bool
}

// Open takes the folder of a checkout; a subfolder of one is refused. A folder
// that is not there wraps fs.ErrNotExist; what git objects to, such as a
// repository of another owner, is passed on in git's words.
func Open(ctx context.Context, dir string) (*Checkout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkout %s: %w", dir, err)
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("open checkout %s: it is not a folder: name the folder of a checkout", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open checkout: %w", err)
	}
	c := &Checkout{Dir: abs}
	if err := c.checkVersion(ctx); err != nil {
		return nil, err
	}
	out, err := c.git(ctx, nil, "rev-parse", "--is-bare-repository", "--path-format=absolute", "--git-path", "shallow")
	if err != nil {
		return nil, fmt.Errorf("open checkout: %w", err)
	}
	bare, shallow, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	c.bare = bare == "true"
	if !c.bare {
		if err := c.checkTop(ctx, info); err != nil {
			return nil, err
		}
	}
	if c.edges, err = readEdges(shallow); err != nil {
		return nil, fmt.Errorf("open checkout %s: %w", dir, err)
	}
	return c, nil
}

// checkTop refuses a folder that lies inside another project's checkout.
func (c *Checkout) checkTop(ctx context.Context, dir fs.FileInfo) error {
	out, err := c.git(ctx, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("open checkout: %w", err)
	}
	top := strings.TrimSuffix(string(out), "\n")
	info, err := os.Stat(top)
	if err != nil {
		return fmt.Errorf("open checkout %s: %w", c.Dir, err)
	}
	if !os.SameFile(dir, info) {
		return fmt.Errorf("open checkout %s: it is no checkout of its own but lies in that of %s: name that one if it is meant", c.Dir, top)
	}
	return nil
}

// readEdges reads git's list of commits whose parents are not there.
func readEdges(file string) (map[string]bool, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the edge of its history: %w", err)
	}
	edges := map[string]bool{}
	for line := range bytes.Lines(b) {
		id := strings.TrimSpace(string(line))
		if !fullPattern().MatchString(id) {
			return nil, fmt.Errorf("read the edge of its history: %s holds %q, which is no commit", file, id)
		}
		edges[id] = true
	}
	return edges, nil
}

// resolve returns the full id of the only commit that begins with id; "" if
// the checkout holds none. Names of branches and tags are no ids.
func (c *Checkout) resolve(ctx context.Context, id string) (string, error) {
	if !prefixPattern().MatchString(id) {
		return "", fmt.Errorf("%q is not 4 to 64 lower-case hex digits of a commit", id)
	}
	// A branch may have the name of an abbreviation, and would win over it.
	out, err := c.git(ctx, nil, "rev-parse", "--disambiguate="+id)
	if err != nil {
		return "", fmt.Errorf("look for commit %s: %w", id, err)
	}
	var found []string
	commits, err := c.commits(ctx, strings.Fields(string(out)))
	if err != nil {
		return "", err
	}
	for full := range commits {
		found = append(found, full)
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("commit %s: %d commits of %s begin so: write more digits", id, len(found), c.Dir)
}
