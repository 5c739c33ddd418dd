package realengine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// fetchIntoVariable, set in the environment, makes this test binary fetch an engine into the folder it names.
const fetchIntoVariable = "REALENGINE_TEST_FETCH_INTO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(fetchIntoVariable); dir != "" {
		if _, err := Fetch(context.Background(), dir, os.Stderr); err != nil {
			io.WriteString(os.Stderr, err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func machine(log io.Writer) *fetcher {
	return &fetcher{root: os.DirFS("/"), mirror: os.Getenv("ONEBIT_DEBIAN_MIRROR"), log: log, try: try}
}

// requireArchive skips, or fails in CI, where the machine cannot reach an archive.
func requireArchive(t *testing.T) {
	t.Helper()
	reach := func() error {
		found, err := archives(os.DirFS("/"), os.Getenv("ONEBIT_DEBIAN_MIRROR"))
		if err != nil {
			return err
		}
		for _, from := range found {
			apt, aptErr := newAPT(t.Context(), os.DirFS("/"), t.TempDir(), from, from.suites[0])
			if aptErr != nil {
				return aptErr
			}
			if err = apt.update(t.Context()); err == nil {
				return nil
			}
		}
		return err
	}
	if err := reach(); err != nil && os.Getenv("ONEBIT_CI") != "" {
		t.Fatalf("no archive: %v", err)
	} else if err != nil {
		t.Skipf("no archive: %v", err)
	}
}

// A fetch is killed at work, then two come at once, and the newest suite's engine does not run: there is one whole
// entry, of the next suite, and nothing else.
func TestFetchKilledThenTwoAtOnce(t *testing.T) {
	requireArchive(t)
	cache := filepath.Join(t.TempDir(), "cache")
	killed := exec.Command("/proc/self/exe")
	killed.Env = append(os.Environ(), fetchIntoVariable+"="+cache)
	killed.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	at := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	await(t, "a fetch at work", func() bool { return len(at("fetch-*/apt/apt.conf")) == 1 })
	if err := syscall.Kill(-killed.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if len(at("fetch-*")) != 1 || len(at("*/engine.json")) != 0 {
		t.Fatalf("after the kill the cache holds %v", at("*"))
	}

	var wg sync.WaitGroup
	trees, errs := make([]*Tree, 2), make([]error, 2)
	logs := make([]bytes.Buffer, 2)
	for i := range 2 {
		wg.Go(func() {
			f := machine(&logs[i])
			f.try = func(ctx context.Context, tree *Tree) error {
				if tree.Suite == "sid" || tree.Suite == "devel" {
					return errors.New("made to fail")
				}
				return try(ctx, tree)
			}
			trees[i], errs[i] = f.fetch(t.Context(), cache)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(at("fetch-*")) != 0 || len(at("*/engine.json")) != 1 {
		t.Errorf("the cache holds %v, want one entry and no work in progress", at("*"))
	}
	if *trees[0] != *trees[1] || trees[0].Suite == "sid" || trees[0].Version == "" {
		t.Errorf("trees %+v and %+v, want the same, of a suite that runs", trees[0], trees[1])
	}
	all := logs[0].String() + logs[1].String()
	if strings.Count(all, "made to fail") != 1 || strings.Count(all, "engine: llama.cpp "+trees[0].Version+" from "+trees[0].Suite) != 2 {
		t.Errorf("log:\n%s\nwant one engine passed over and two that say what is used", all)
	}

	// It is cached: without archive and network it is there all the same.
	offline := &fetcher{root: fstest.MapFS{}, log: io.Discard, try: try}
	tree, err := offline.fetch(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	if err := try(t.Context(), tree); err != nil {
		t.Errorf("the cached engine: %v", err)
	}
}

func TestFetchErrors(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Log("no apt here: the error about that is tested alone")
	}
	unsigned := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "Release") {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, "Origin: Debian\nSuite: unstable\nCodename: sid\nDate: "+time.Now().UTC().Format(time.RFC1123)+
			"\nArchitectures: amd64 arm64\nComponents: main\nSHA256:\n")
	}))
	defer unsigned.Close()
	for name, test := range map[string]struct {
		mirror string
		root   fs.FS
		want   []string
	}{
		"nobody listens":    {"http://127.0.0.1:1/debian", os.DirFS("/"), []string{"sid: ", "testing: "}},
		"unsigned archive":  {unsigned.URL, os.DirFS("/"), []string{"sid: ", "not signed"}},
		"no sources at all": {"", fstest.MapFS{}, []string{"apt's sources"}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			f := &fetcher{root: test.root, mirror: test.mirror, log: io.Discard, try: try}
			_, err := f.fetch(t.Context(), cache)
			if err == nil {
				t.Fatal("no error")
			}
			if _, missing := exec.LookPath("apt-get"); missing != nil {
				test.want = []string{"needs Debian's or Ubuntu's apt"}
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(cache, "*")); len(left) != 1 {
				t.Errorf("it left %v, want the lock alone", left)
			}
		})
	}
}

func TestFetchEnds(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	f := &fetcher{root: os.DirFS("/"), mirror: silent.URL, log: io.Discard, try: try}
	if _, err := f.fetch(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		if _, missing := exec.LookPath("apt-get"); missing == nil {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	}
}

func TestCacheDir(t *testing.T) {
	got, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(got, "../../go.mod")); err != nil {
		t.Errorf("cache %s is not in the module's root: %v", got, err)
	}
	t.Chdir("/")
	if got, err := CacheDir(); err == nil {
		t.Errorf("cache %s outside of a module, want an error", got)
	}
}
