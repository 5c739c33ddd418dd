package realengine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// modelSeed is the seed of the cached models.
const modelSeed = 1

// CacheDir returns the default cache folder, .cache/engine beside the go.mod above the working folder.
func CacheDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the engine's cache: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, "go.mod")); err == nil && info.Mode().IsRegular() {
			return filepath.Join(at, ".cache", "engine"), nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the engine's cache: no go.mod in or above %s", dir)
		}
	}
}

// Fetch returns the engine in cacheDir, after fetching it there if need be. It says on log, if that is not
// nil, which version of which suite it uses, and why it passed over others. The error of a fetch names what
// was wrong with each suite that was tried.
func Fetch(ctx context.Context, cacheDir string, log io.Writer) (*Tree, error) {
	if log == nil {
		log = io.Discard
	}
	f := &fetcher{root: os.DirFS("/"), mirror: os.Getenv("ONEBIT_DEBIAN_MIRROR"), log: log, try: try}
	return f.fetch(ctx, cacheDir)
}

// fetcher fetches for one machine.
type fetcher struct {
	root   fs.FS  // the machine's root folder
	mirror string // in place of the machine's own archive, if not empty
	log    io.Writer
	try    func(ctx context.Context, tree *Tree) error // whether an engine runs here
}

func (f *fetcher) fetch(ctx context.Context, cacheDir string) (*Tree, error) {
	cacheDir, err := filepath.Abs(cacheDir)
	if err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	revision, err := revision()
	if err != nil {
		return nil, err
	}
	entry := filepath.Join(cacheDir, runtime.GOARCH+"-"+revision)
	if tree, err := cached(entry); err == nil {
		f.say(tree)
		return tree, nil
	}
	if err := makeDirs(cacheDir); err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	lock := flock.New(filepath.Join(cacheDir, "lock"))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("wait for another fetch into %s: %w", cacheDir, err)
	}
	defer lock.Close()
	if tree, err := cached(entry); err == nil {
		f.say(tree)
		return tree, nil
	}
	sweep(cacheDir)
	tree, err := f.fetchInto(ctx, entry)
	if err != nil {
		return nil, err
	}
	f.say(tree)
	return tree, nil
}

func (f *fetcher) say(tree *Tree) {
	fmt.Fprintf(f.log, "engine: llama.cpp %s from %s\n", tree.Version, tree.Suite)
}

// revision digests all that this package puts into the cache.
func revision() (string, error) {
	sum := sha256.New()
	for _, text := range []string{frontEnd, programLauncher, strings.Join(Programs(), " ")} {
		fmt.Fprintf(sum, "%d %s", len(text), text)
	}
	for _, kind := range Kinds() {
		if err := WriteModel(sum, kind, modelSeed); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}

// cached returns the tree of a finished cache entry.
func cached(entry string) (*Tree, error) {
	text, err := os.ReadFile(filepath.Join(entry, "engine.json"))
	if err != nil {
		return nil, err
	}
	tree := &Tree{Dir: filepath.Join(entry, "tree"), models: filepath.Join(entry, "models")}
	if err := json.Unmarshal(text, tree); err != nil {
		return nil, fmt.Errorf("read %s: %w", entry, err)
	}
	return tree, nil
}

// sweep removes what killed fetches left. The lock is held, so nobody works there, unless it be the apt of a killed
// fetch, about to notice: what cannot be removed now stays for the next one.
func sweep(cacheDir string) {
	left, _ := filepath.Glob(filepath.Join(cacheDir, "fetch-*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

// fetchInto tries the suites of the archives in turn and moves the first engine that runs to entry.
func (f *fetcher) fetchInto(ctx context.Context, entry string) (*Tree, error) {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("fetch engine: this needs Debian's or Ubuntu's apt: %w", err)
		}
	}
	archives, err := archives(f.root, f.mirror)
	if err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(entry), "fetch-")
	if err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	whole := filepath.Join(work, "entry")
	if err := writeModels(filepath.Join(whole, "models")); err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	var tried []error
	for _, from := range archives {
		for _, suite := range from.suites {
			tree, err := f.fetchSuite(ctx, whole, filepath.Join(work, "apt"), from, suite)
			if err == nil {
				return finish(tree, whole, entry)
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("fetch engine: %w", context.Cause(ctx))
			}
			fmt.Fprintf(f.log, "engine: not from %s: %v\n", suite, err)
			tried = append(tried, fmt.Errorf("%s: %w", suite, err))
		}
	}
	return nil, fmt.Errorf("fetch engine: %w", errors.Join(tried...))
}

// finish makes entry what whole holds, in one rename.
func finish(tree *Tree, whole, entry string) (*Tree, error) {
	text, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	if err := writeFile(filepath.Join(whole, "engine.json"), string(text)+"\n", 0o644); err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	syscall.Sync() // the rename must not reach the disk before the files
	if err := os.RemoveAll(entry); err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	if err := os.Rename(whole, entry); err != nil {
		return nil, fmt.Errorf("fetch engine: %w", err)
	}
	return cached(entry)
}

// fetchSuite makes whole/tree of one suite's engine and sees that it runs here.
func (f *fetcher) fetchSuite(ctx context.Context, whole, work string, from archive, suite string) (*Tree, error) {
	tree := &Tree{Dir: filepath.Join(whole, "tree"), Suite: suite, models: filepath.Join(whole, "models")}
	for _, dir := range []string{work, tree.Dir} {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	apt, err := newAPT(ctx, f.root, work, from, suite)
	if err != nil {
		return nil, err
	}
	if err := apt.update(ctx); err != nil {
		return nil, err
	}
	if err := apt.download(ctx); err != nil {
		return nil, err
	}
	unpacked, version, err := apt.unpack(ctx)
	if err != nil {
		return nil, err
	}
	tree.Version = version
	if err := makeDirs(tree.Dir); err != nil {
		return nil, err
	}
	if err := assemble(tree.Dir, unpacked); err != nil {
		return nil, err
	}
	if err := f.try(ctx, tree); err != nil {
		return nil, fmt.Errorf("%s does not run here: %w", version, err)
	}
	return tree, nil
}

func writeModels(dir string) error {
	if err := makeDirs(dir); err != nil {
		return err
	}
	for _, kind := range Kinds() {
		var b strings.Builder
		if err := WriteModel(&b, kind, modelSeed); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, kind+".gguf"), b.String(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
