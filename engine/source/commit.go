package source

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// Commit is one commit as people read it.
type Commit struct {
	ID      string // full
	Subject string // the first paragraph on one line, valid UTF-8
	Date    string // when its author made it, RFC 3339 with the author's offset
}

// commit is one commit as git stores it.
type commit struct {
	id      string
	parents []string
	date    string
	message string // as stored, in whatever encoding
	// encoding is the header of that name, "" if there is none.
	encoding string
}

// opaque tells why the message cannot be searched for ASCII, or "".
func (c *commit) opaque() string {
	if c.encoding != "" && !asciiPattern().MatchString(c.encoding) {
		return fmt.Sprintf("is in the encoding %.20q", c.encoding)
	}
	if strings.Contains(c.message, "\x00") {
		return "is not text"
	}
	return ""
}

// asciiPattern are the encodings in which ASCII stands for itself.
var asciiPattern = lazyregexp.New(`(?i)^(?:utf-?8|(?:us-)?ascii|iso-?8859-?[0-9]{1,2}|latin-?[0-9]{1,2}|(?:windows-|cp)125[0-8]|cp?(?:437|850|852|866|1252)|koi8-?[ru]|euc-?(?:jp|kr|cn|tw)|gb18030|gbk|gb2312|big5|s(?:hift)?[-_]?jis|cp932|cp936|cp949)$`)

func (c *commit) subject() string {
	text, _, _ := strings.Cut(strings.TrimLeft(c.message, "\n"), "\n\n")
	return strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
}

// commits reads those of the ids that are commits of this checkout.
func (c *Checkout) commits(ctx context.Context, ids []string) (map[string]*commit, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := c.git(ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	found, err := parseObjects(out)
	if err != nil {
		return nil, fmt.Errorf("read commits of %s: %w", c.Dir, err)
	}
	return found, nil
}

// maxBatch bounds the commits that are held at once to be looked through.
const maxBatch = 5000

// search reads the ids' commits and keeps some. Unlike git rev-list --grep it
// sees the bytes as they are stored, whatever encoding a commit claims.
func (c *Checkout) search(ctx context.Context, ids []string, keep func(*commit) bool) (map[string]*commit, error) {
	kept := map[string]*commit{}
	for chunk := range slices.Chunk(ids, maxBatch) {
		found, err := c.commits(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for id, f := range found {
			if keep(f) {
				kept[id] = f
			}
		}
	}
	return kept, nil
}

// parseObjects reads what git cat-file --batch prints and keeps the commits.
func parseObjects(b []byte) (map[string]*commit, error) {
	found := map[string]*commit{}
	for len(b) > 0 {
		line, rest, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			return nil, fmt.Errorf("git's answer ends early at %q", line)
		}
		b = rest
		head := strings.Fields(string(line))
		if len(head) == 2 && (head[1] == "missing" || head[1] == "ambiguous") {
			continue
		}
		if len(head) != 3 || !fullPattern().MatchString(head[0]) {
			return nil, fmt.Errorf("git's answer has %q, which is not understood", line)
		}
		size, err := strconv.Atoi(head[2])
		if err != nil || size < 0 || size >= len(b) || b[size] != '\n' {
			return nil, fmt.Errorf("git's answer about %s ends early", head[0])
		}
		if head[1] == "commit" {
			found[head[0]] = parseCommit(head[0], b[:size])
		}
		b = b[size+1:]
	}
	return found, nil
}

// parseCommit reads a commit object: header lines, an empty line, the message.
func parseCommit(id string, b []byte) *commit {
	header, message, _ := bytes.Cut(b, []byte("\n\n"))
	c := &commit{id: id, message: string(message)}
	for line := range strings.Lines(string(header)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "parent":
			if fullPattern().MatchString(value) {
				c.parents = append(c.parents, value)
			}
		case "encoding":
			c.encoding = value
		case "author":
			c.date = authorDate(value)
		}
	}
	return c
}

// authorDate turns "Name <address> 1790000000 +0200" into RFC 3339. What is no
// date gives "".
func authorDate(s string) string {
	fields := strings.Fields(s[strings.LastIndexByte(s, '>')+1:])
	if len(fields) != 2 {
		return ""
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	offset, oerr := strconv.Atoi(fields[1])
	if err != nil || oerr != nil || seconds < 0 || seconds >= 253402214400 || offset < -1400 || offset > 1400 {
		return ""
	}
	zone := time.FixedZone("", (offset/100*60+offset%100)*60)
	return time.Unix(seconds, 0).In(zone).Format(time.RFC3339)
}

// Between returns the commits that to has and from has not, newest first as
// git log shows them. From need not be an ancestor of to: what only from has
// is asked for the other way round. Commits or parts of the history that are
// not there wrap [ErrIncomplete].
func (c *Checkout) Between(ctx context.Context, from, to string) ([]Commit, error) {
	var full [2]string
	for i, id := range []string{from, to} {
		var err error
		if full[i], err = c.resolve(ctx, id); err != nil {
			return nil, err
		}
		if full[i] == "" {
			return nil, fmt.Errorf("commit %s is not in %s: fetch it: %w", id, c.Dir, ErrIncomplete)
		}
	}
	ids, err := c.revList(ctx, full[1], "^"+full[0])
	if err != nil {
		return nil, err
	}
	// What one side lost, the other would be said not to have in common.
	if cut, err := c.cut(ctx, full[0]+"..."+full[1]); err != nil {
		return nil, err
	} else if cut {
		return nil, fmt.Errorf("the history of %s between %s and %s is shallow: git fetch --unshallow: %w", c.Dir, short(from), short(to), ErrIncomplete)
	}
	found, err := c.commits(ctx, ids)
	if err != nil {
		return nil, err
	}
	commits := make([]Commit, 0, len(ids))
	for _, id := range ids {
		if f := found[id]; f != nil {
			commits = append(commits, Commit{ID: id, Subject: f.subject(), Date: f.date})
		}
	}
	return commits, nil
}

func (c *Checkout) revList(ctx context.Context, args ...string) ([]string, error) {
	out, err := c.git(ctx, nil, append([]string{"rev-list"}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("walk the history: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// cut tells whether a shallow clone left out parents of these commits.
func (c *Checkout) cut(ctx context.Context, revisions ...string) (bool, error) {
	if len(c.edges) == 0 {
		return false, nil
	}
	ids, err := c.revList(ctx, revisions...)
	return slices.ContainsFunc(ids, func(id string) bool { return c.edges[id] }), err
}

// ancestor tells whether a is b or an ancestor of it, as far as can be seen.
func (c *Checkout) ancestor(ctx context.Context, a, b string) (bool, error) {
	_, err := c.git(ctx, nil, "merge-base", "--is-ancestor", a, b)
	if refused(err, 1) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare %s and %s: %w", short(a), short(b), err)
	}
	return true, nil
}

// short is a commit's id as people write it.
func short(id string) string { return id[:min(len(id), 7)] }
