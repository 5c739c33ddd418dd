package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/engine/source"
	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager"
)

type pkgDiffOptions struct {
	sources []string
	changes string
}

func newPkgDiffCommand(a *app) *cobra.Command {
	var opts pkgDiffOptions
	c := &cobra.Command{
		Use:   "diff A B [--source NAME=DIR]… [--changes FILE]",
		Short: "Show what package B has that A has not, and the other way round",
		Long: `Compare two packages, each an archive or an installed one's name or folder: which is newer,
fixes gained and lost, pins moved, files, sizes, and what the host must have. "(dirty)"
is a pin whose checkout had changes that no commit holds. With --source NAME=DIR, a git
checkout, the commits between two pins are listed: those that came, and those that were
dropped where the pin went back or sideways. Nothing is fetched; what a checkout does not
hold is said.

With -o json all files are listed, in text the ten that weigh most. --changes writes the
moved pins and their commits to a file, for a release page.`,
		Args:              between(2, 2),
		ValidArgsFunction: a.completePackages,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runPkgDiff(cmd.Context(), args[0], args[1], opts)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&opts.sources, "source", nil, "git checkout to list the commits of a component from, as NAME=DIR (repeat for more)")
	f.StringVar(&opts.changes, "changes", "", "write the moved pins with their commits to this file, such as changes.json")
	return c
}

type commitDocument struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Date    string `json:"date"` // when the author made it, RFC 3339
}

// movedPin is a pin that moved, or one of a checkout with changes. Commits and Dropped are null where they could not be listed, and Note says why.
type movedPin struct {
	Component string           `json:"component"`
	From      string           `json:"from"`
	To        string           `json:"to"`
	Dirty     bool             `json:"dirty,omitempty"`
	FromDirty bool             `json:"from_dirty,omitempty"`
	ToDirty   bool             `json:"to_dirty,omitempty"`
	Commits   []commitDocument `json:"commits"`
	Dropped   []commitDocument `json:"dropped"`
	Note      string           `json:"note,omitempty"`
}

// changesDocument is the file of --changes.
type changesDocument struct {
	From string     `json:"from"`
	To   string     `json:"to"`
	Pins []movedPin `json:"pins"`
}

type diffSide struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

type diffDocument struct {
	From diffSide `json:"from"`
	To   diffSide `json:"to"`
	// VersionChange is what B's tag is to A's: newer, older, same, same rank or not comparable; "" if neither has one.
	VersionChange string     `json:"version_change"`
	Same          bool       `json:"same"`
	Pins          []movedPin `json:"pins"`
	*packager.Difference
}

func (a *app) runPkgDiff(ctx context.Context, from, to string, opts pkgDiffOptions) error {
	sources, err := parseSources(opts.sources)
	if err != nil {
		return err
	}
	var sides [2]diffSide
	var manifests [2]*packager.Manifest
	for i, what := range []string{from, to} {
		m, digest, err := a.manifest(ctx, what)
		if err != nil {
			return err
		}
		manifests[i], sides[i] = m, diffSide{m.Name(), or(m.Version, m.Tag), digest}
	}
	checkouts, err := openCheckouts(ctx, sources, manifests)
	if err != nil {
		return err
	}
	doc := diffDocument{From: sides[0], To: sides[1], Difference: packager.Compare(manifests[0], manifests[1]), Pins: []movedPin{}}
	doc.VersionChange = versionChange(manifests[0], manifests[1])
	doc.Same = doc.Difference.Same()
	for _, pin := range doc.Difference.Pins {
		moved, err := commitsBetween(ctx, pin, checkouts[pin.Component])
		if err != nil {
			return err
		}
		doc.Pins = append(doc.Pins, moved)
	}
	if opts.changes != "" {
		if err := writeChanges(opts.changes, changesDocument{doc.From.Package, doc.To.Package, doc.Pins}); err != nil {
			return err
		}
	}
	return a.show(doc, func(w io.Writer) error { return printDifference(w, doc) })
}

// openCheckouts opens the checkouts of components that either package has.
func openCheckouts(ctx context.Context, sources map[string]string, manifests [2]*packager.Manifest) (map[string]*source.Checkout, error) {
	checkouts := map[string]*source.Checkout{}
	for name, dir := range sources {
		has := func(m *packager.Manifest) bool { _, ok := m.Pins()[name]; return ok }
		if !slices.ContainsFunc(manifests[:], has) {
			return nil, usagef("--source %s: neither package has a component of that name: 1bit pkg inspect lists them", name)
		}
		c, err := source.Open(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		checkouts[name] = c
	}
	return checkouts, nil
}

// commitsBetween lists the commits that a pin moved over, or says why it cannot.
func commitsBetween(ctx context.Context, pin packager.PinChange, c *source.Checkout) (movedPin, error) {
	moved := movedPin{
		Component: pin.Component, From: pin.From, To: pin.To,
		Dirty: pin.Dirty, FromDirty: pin.FromDirty, ToDirty: pin.ToDirty,
	}
	switch {
	case pin.From == "" || pin.To == "" || !pin.Moved():
		moved.Commits, moved.Dropped = []commitDocument{}, []commitDocument{}
		return moved, nil
	case c == nil:
		moved.Note = fmt.Sprintf("no checkout to list the commits from: --source %s=DIR", pin.Component)
		return moved, nil
	}
	came, err := c.Between(ctx, pin.From, pin.To)
	if err == nil {
		var gone []source.Commit
		if gone, err = c.Between(ctx, pin.To, pin.From); err == nil {
			moved.Commits, moved.Dropped = commitDocuments(came), commitDocuments(gone)
		}
	}
	if ctx.Err() != nil {
		return moved, err
	}
	if err != nil {
		moved.Note = err.Error()
	}
	return moved, nil
}

func commitDocuments(commits []source.Commit) []commitDocument {
	docs := make([]commitDocument, 0, len(commits))
	for _, c := range commits {
		docs = append(docs, commitDocument{c.ID, c.Subject, c.Date})
	}
	return docs
}

func writeChanges(name string, doc changesDocument) error {
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := atomicfile.Write(filepath.Clean(name), append(b, '\n'), 0o644); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write the changes: folder %s is not there: %w", filepath.Dir(name), err)
		}
		return fmt.Errorf("write the changes: %w", err)
	}
	return nil
}
