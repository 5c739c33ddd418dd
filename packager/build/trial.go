package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
	"golang.org/x/sync/errgroup"
)

// trialTime is how long a program may take to say its version.
const trialTime = 60 * time.Second

// Trial is what an entry point said to --version, run out of the unpacked
// package with an empty environment.
type Trial struct {
	Entry string // the entry point's name
	// Version is the line of its output that says so, else the first line; ""
	// if it did not answer.
	Version string
	// Answered is false where the program started and ended with an error of
	// its own: it does not know --version, or does not work.
	Answered bool
	// Status is what it ended with, 0 if it answered.
	Status int
	// Said is the first line of what it said when it did not answer.
	Said string
	// Commits are those that it says it is of.
	Commits []string
}

// tryPackage unpacks an archive beside the output, starts its programs unless
// noRun is set, and compares what they say with the pins.
func tryPackage(ctx context.Context, m *packager.Manifest, archive io.Reader, w *workFolder, noRun bool) ([]Trial, error) {
	dir, err := w.sub(unpackedName)
	if err != nil {
		return nil, err
	}
	t := &trial{manifest: m, limit: trialTime}
	trials, printed, err := t.try(ctx, archive, dir, noRun)
	if err == nil {
		err = comparePins(m, printed)
	}
	if err != nil {
		return nil, err
	}
	return trials, nil
}

// trial tries one package.
type trial struct {
	manifest *packager.Manifest
	limit    time.Duration // for a program
	host     linkage.Host
}

// try unpacks the archive in dir, where no build ever was, by which every
// content is compared with the manifest, and starts its programs unless noRun
// is set.
func (t *trial) try(ctx context.Context, archive io.Reader, dir string, noRun bool) (trials []Trial, printed map[string]string, err error) {
	if err := unpack(ctx, archive, dir); err != nil {
		return nil, nil, fmt.Errorf("unpack what was packed: %w", err)
	}
	if noRun {
		return nil, nil, nil
	}
	return t.run(ctx, dir)
}

func unpack(ctx context.Context, archive io.Reader, dir string) error {
	r, err := packager.NewReader(archive, packager.Limits{})
	if err != nil {
		return err
	}
	defer r.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := r.Extract(ctx, root, packager.ExtractOptions{Unsynced: true}); err != nil {
		return err
	}
	return os.Chmod(dir, 0o555) // as installed
}

// run starts every program that is an entry point, several at a time. printed
// is all that each entry point said.
func (t *trial) run(ctx context.Context, dir string) ([]Trial, map[string]string, error) {
	entries := t.manifest.EntryPoints
	paths := slices.Compact(slices.Sorted(maps.Values(entries)))
	orphans, err := openOrphanage()
	if err != nil {
		return nil, nil, err
	}
	runs, group := make([]*programRun, len(paths)), errgroup.Group{}
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	for i, p := range paths {
		group.Go(func() (err error) {
			runs[i], err = runProgram(ctx, filepath.Join(dir, filepath.FromSlash(p)), t.limit)
			return err
		})
	}
	err = group.Wait()
	left, sweepErr := orphans.close(groups(runs))
	if err != nil {
		return nil, nil, err
	}
	var trials []Trial
	var wrong []error
	if sweepErr != nil {
		wrong = append(wrong, fmt.Errorf("the entry points: %w", sweepErr))
	}
	if len(left) > 0 {
		wrong = append(wrong, fmt.Errorf("asked for --version, an entry point leaves processes running: %s", strings.Join(left, ", ")))
	}
	printed, answered := map[string]string{}, 0
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		i, _ := slices.BinarySearch(paths, entries[entry])
		r := runs[i]
		one := Trial{Entry: entry}
		if err := r.failure(); err != nil {
			wrong = append(wrong, fmt.Errorf("entry point %s: %s --version %w%s", entry, entries[entry], err, r.said.ending(dir)))
		} else if r.status == 0 {
			one.Answered, one.Version = true, r.said.version()
			printed[entry] = r.said.String()
			one.Commits = printedCommits(printed[entry])
			answered++
		} else {
			one.Status, one.Said = r.status, strings.ReplaceAll(r.said.first(), dir+"/", "")
		}
		trials = append(trials, one)
	}
	if len(wrong) == 0 && len(entries) > 0 && answered == 0 {
		wrong = append(wrong, fmt.Errorf("no entry point answers --version: each ended with an error%s", runs[0].said.ending(dir)))
	}
	if len(wrong) > 0 {
		return nil, nil, t.unfit(wrong)
	}
	return trials, printed, nil
}

// groups are the process groups that the programs had.
func groups(runs []*programRun) []int {
	var out []int
	for _, r := range runs {
		if r != nil && r.group != 0 {
			out = append(out, r.group)
		}
	}
	return out
}

// unfit says what is wrong with the package, or with this machine for it.
func (t *trial) unfit(wrong []error) error {
	text := []string{fmt.Sprintf("try package %s", t.manifest.Name())}
	for _, err := range wrong {
		text = append(text, err.Error())
	}
	if missing := t.host.Missing(t.manifest); len(missing) > 0 {
		for _, p := range missing {
			if p.Path == "." {
				p.Path = "the package"
			}
			text = append(text, p.Path+" "+p.What)
		}
		text = append(text, "build it on a machine that has what it asks of its host, or with --no-run, which starts nothing")
	} else {
		text = append(text, "a package for another kind of machine is built with --no-run, which starts nothing")
	}
	return fmt.Errorf("%s: %w", strings.Join(text, "\n"), ErrUnfit)
}

// ErrUnfit is wrapped when a package would not work where it is installed: a
// library is missing, a path of the build machine is left in it, or its
// programs do not start.
var ErrUnfit = errors.New("package is not fit to be installed")
