package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Head returns the full id of the commit that is checked out and the tracked
// files whose content or mode it does not hold, staged or not. A submodule
// counts when another commit is checked out in it or tracked files of it are
// changed. So does a file that git was told not to look at (assume-unchanged,
// or skip-worktree and there). Untracked files do not count, as for
// `git describe --dirty`.
//
// Contents are compared: the times and sizes that the index remembers are not
// believed. Filters that the checkout's own configuration names do not run, so
// a file that only they make equal is dirty; those of the user's do.
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
	if !fullPattern().MatchString(commit) {
		return "", nil, fmt.Errorf("read the commit of %s: git says %q, which is none", c.Dir, commit)
	}
	if dirty, err = c.changed(ctx, commit); err != nil {
		return "", nil, fmt.Errorf("look for changes in %s: %w", c.Dir, err)
	}
	return commit, dirty, nil
}

// changed are the tracked files, sorted, that are not as the commit has them:
// on disk, in the index or in submodules.
func (c *Checkout) changed(ctx context.Context, commit string) ([]string, error) {
	unwatched, absent, err := c.unwatched(ctx)
	if err != nil {
		return nil, err
	}
	onDisk, err := c.onDisk(ctx, commit)
	if err != nil {
		return nil, err
	}
	onDisk = slices.DeleteFunc(onDisk, func(f string) bool { return absent[f] })
	staged, err := c.git(ctx, nil, "diff-index", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", commit)
	if err != nil {
		return nil, err
	}
	dirty := slices.Concat(onDisk, unwatched, nonEmpty(staged))
	nested, err := c.submodules(ctx, commit)
	if err != nil {
		return nil, err
	}
	for _, path := range nested {
		if slices.Contains(dirty, path) {
			continue
		}
		if in, err := c.changedInside(ctx, path); err != nil {
			return nil, err
		} else if in {
			dirty = append(dirty, path)
		}
	}
	slices.Sort(dirty)
	return slices.Compact(dirty), nil
}

// onDisk compares the files on disk with the commit, by an index that knows
// nothing of them yet.
func (c *Checkout) onDisk(ctx context.Context, commit string) ([]string, error) {
	a, err := c.aside(ctx, commit)
	if err != nil {
		return nil, err
	}
	defer a.close()
	form, err := c.form(ctx, a)
	if err != nil {
		return nil, err
	}
	if _, err := a.git(ctx, append(slices.Clone(form), "read-tree", commit)...); err != nil {
		return nil, err
	}
	out, err := a.git(ctx, append(form, "status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=dirty", "--no-renames")...)
	if err != nil {
		return nil, err
	}
	return parseStatus(out)
}

// form are the settings of the checkout that say in which form files lie on
// disk, as options, together with its own file of attributes.
func (c *Checkout) form(ctx context.Context, a *aside) ([]string, error) {
	out, err := c.git(ctx, nil, "config", "-z", "--get-regexp", `^core\.(autocrlf|eol|symlinks|ignorecase|precomposeunicode|attributesfile)$`)
	if err != nil && !refused(err, 1) {
		return nil, err
	}
	var form []string
	for _, entry := range nonEmpty(out) {
		key, value, has := strings.Cut(entry, "\n")
		if has {
			key += "=" + value
		}
		form = append(form, "-c", key)
	}
	form = append(form, "-c", "core.fileMode=true", "-c", "core.ignoreStat=false", "-c", "core.trustctime=true", "-c", "core.checkStat=default",
		"-c", "submodule.recurse=false", "-c", "index.sparse=false", "-c", "core.sparseCheckout=false", "-c", "core.untrackedCache=false")
	if out, err = c.git(ctx, nil, "rev-parse", "--path-format=absolute", "--git-path", "info/attributes"); err != nil {
		return nil, err
	}
	attributes, err := os.ReadFile(strings.TrimSuffix(string(out), "\n"))
	if errors.Is(err, fs.ErrNotExist) {
		return form, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the attributes of files: %w", err)
	}
	if err := os.WriteFile(filepath.Join(a.dir, "info", "attributes"), attributes, 0o600); err != nil {
		return nil, fmt.Errorf("pass on the attributes of files: %w", err)
	}
	return form, nil
}

// submodules are the paths of a commit's submodules.
func (c *Checkout) submodules(ctx context.Context, commit string) ([]string, error) {
	out, err := c.git(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, fmt.Errorf("look for submodules: %w", err)
	}
	var paths []string
	for _, entry := range nonEmpty(out) {
		if info, path, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(info, "160000 ") {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// changedInside tells whether a submodule has changes, asked in the same way as
// its parent: git itself would ask it with the submodule's configuration.
func (c *Checkout) changedInside(ctx context.Context, path string) (bool, error) {
	dir := filepath.Join(c.Dir, path)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return false, nil // not checked out
	}
	sub, err := Open(ctx, dir)
	if err != nil {
		return false, fmt.Errorf("look into the submodule %s: %w", path, err)
	}
	_, dirty, err := sub.Head(ctx)
	if err != nil {
		return false, fmt.Errorf("look into the submodule %s: %w", path, err)
	}
	return len(dirty) > 0, nil
}

func nonEmpty(b []byte) []string {
	return slices.DeleteFunc(strings.Split(string(b), "\x00"), func(s string) bool { return s == "" })
}

// unwatched are the files whose changes git status is told to leave out, and
// those that a sparse checkout has not on disk.
func (c *Checkout) unwatched(ctx context.Context) (files []string, absent map[string]bool, err error) {
	out, err := c.git(ctx, nil, "ls-files", "-v", "-z")
	if err != nil {
		return nil, nil, fmt.Errorf("look for changes: %w", err)
	}
	absent = map[string]bool{}
	for _, entry := range nonEmpty(out) {
		tag, path, _ := strings.Cut(entry, " ")
		switch {
		case path == "":
		case strings.EqualFold(tag, "S"):
			if _, err := os.Lstat(filepath.Join(c.Dir, path)); err == nil {
				files = append(files, path)
			} else if errors.Is(err, fs.ErrNotExist) {
				absent[path] = true
			}
		case tag == strings.ToLower(tag) && tag != "?":
			files = append(files, path)
		}
	}
	return files, absent, nil
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
