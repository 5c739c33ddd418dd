package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrIncomplete is wrapped where a checkout does not hold the history that an
// answer needs. Fetching it helps.
var ErrIncomplete = errors.New("not all of the history is in this checkout")

var (
	fullPattern   = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	prefixPattern = regexp.MustCompile(`^[0-9a-f]{4,64}$`)
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
		if !fullPattern.MatchString(id) {
			return nil, fmt.Errorf("read the edge of its history: %s holds %q, which is no commit", file, id)
		}
		edges[id] = true
	}
	return edges, nil
}

// Head returns the full id of the commit that is checked out and the tracked
// files whose content or mode it does not hold, staged or not. A submodule
// counts when another commit is checked out in it or tracked files of it are
// changed. So does a file that git was told not to look at (assume-unchanged,
// or skip-worktree and there). Untracked files do not count, as for
// `git describe --dirty`.
func (c *Checkout) Head(ctx context.Context) (commit string, dirty []string, err error) {
	if c.bare {
		return "", nil, fmt.Errorf("read the commit of %s: it is a bare repository, from which nothing was built: name the checkout", c.Dir)
	}
	out, err := c.git(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if refused(err, 1) {
		return "", nil, fmt.Errorf("read the commit of %s: nothing is committed there yet: commit what was built", c.Dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("read the commit: %w", err)
	}
	commit = strings.TrimSpace(string(out))
	if !fullPattern.MatchString(commit) {
		return "", nil, fmt.Errorf("read the commit of %s: git says %q, which is none", c.Dir, commit)
	}
	out, err = c.git(ctx, nil, "status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=untracked", "--no-renames")
	if err != nil {
		return "", nil, fmt.Errorf("look for changes: %w", err)
	}
	if dirty, err = parseStatus(out); err != nil {
		return "", nil, fmt.Errorf("look for changes in %s: %w", c.Dir, err)
	}
	unwatched, err := c.unwatched(ctx)
	if err != nil {
		return "", nil, err
	}
	dirty = append(dirty, unwatched...)
	slices.Sort(dirty)
	return commit, slices.Compact(dirty), nil
}

// unwatched are the files whose changes git status is told to leave out.
func (c *Checkout) unwatched(ctx context.Context) ([]string, error) {
	out, err := c.git(ctx, nil, "ls-files", "-v", "-z")
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	var files []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		tag, path, _ := strings.Cut(entry, " ")
		switch {
		case path == "":
		case tag == "S": // of a sparse checkout, unless it is there all the same
			if _, err := os.Lstat(filepath.Join(c.Dir, path)); err == nil {
				files = append(files, path)
			}
		case tag == strings.ToLower(tag) && tag != "?":
			files = append(files, path)
		}
	}
	return files, nil
}

// parseStatus reads the changed files of git's status, version 2, with NULs.
func parseStatus(b []byte) ([]string, error) {
	var files []string
	for len(b) > 0 {
		entry, rest, ok := bytes.Cut(b, []byte{0})
		if !ok || len(entry) < 2 {
			return nil, fmt.Errorf("git's list of changes ends early at %q", entry)
		}
		b = rest
		// The path is the last field and may hold spaces.
		fields := map[byte]int{'1': 9, '2': 10, 'u': 11}[entry[0]]
		switch {
		case entry[0] == '#' || entry[0] == '?' || entry[0] == '!':
			continue
		case fields == 0:
			return nil, fmt.Errorf("git's list of changes has %q, which is not understood", entry)
		}
		parts := bytes.SplitN(entry, []byte{' '}, fields)
		if len(parts) != fields || len(parts[fields-1]) == 0 {
			return nil, fmt.Errorf("git's list of changes has %q, which is not understood", entry)
		}
		files = append(files, string(parts[fields-1]))
		if entry[0] == '2' { // renamed: the old name follows
			if _, b, ok = bytes.Cut(b, []byte{0}); !ok {
				return nil, fmt.Errorf("git's list of changes ends early at %q", entry)
			}
		}
	}
	return files, nil
}

// resolve returns the full id of the only commit that begins with id; "" if
// the checkout holds none. Names of branches and tags are no ids.
func (c *Checkout) resolve(ctx context.Context, id string) (string, error) {
	if !prefixPattern.MatchString(id) {
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
