package realengine

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestVariantPlainRunsAnywhere(t *testing.T) {
	tree := Require(t)
	dir := filepath.Join(t.TempDir(), "a place with spaces")
	if err := tree.Variant(Plain, dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(dir, "1bit"), "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "1bit front end, llama-server ") {
		t.Errorf("1bit --version: %v, %q", err, out)
	}
	out, err = exec.Command(filepath.Join(dir, "1bit"), "bench", "-m", tree.Model(Plain), "-p", "8", "-n", "8", "-r", "1").Output()
	if err != nil || !strings.Contains(string(out), "tg8") {
		t.Errorf("1bit bench: %v, %q", err, out)
	}
	out, err = exec.Command(filepath.Join(dir, llamaDir, "bin/test-backend-ops"), "test", "-b", "CPU", "-o", "ARANGE").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "tests passed") {
		t.Errorf("test-backend-ops: %v, %q", err, out)
	}
	if err := tree.Copy(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("copy over a tree: error %v, want %v", err, fs.ErrExist)
	}
}

func TestTreeHasNoForeignPaths(t *testing.T) {
	tree := Require(t)
	err := filepath.WalkDir(tree.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() || info.Mode().Perm()&0o444 != 0o444 || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if info.Size() > 1<<14 || info.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), "#!") && strings.Contains(string(text), filepath.Dir(tree.Dir)) {
			t.Errorf("%s names the cache", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestVariantExits(t *testing.T) {
	tree := Require(t)
	dir := filepath.Join(t.TempDir(), "tree")
	if err := tree.Variant(Exits, dir); err != nil {
		t.Fatal(err)
	}
	s := start(t, filepath.Join(dir, "1bit"), nil, "-m", tree.Model(Plain))
	_ = s.wait()
	if got := s.cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
}

func TestVariantHangs(t *testing.T) {
	tree := Require(t)
	dir := filepath.Join(t.TempDir(), "tree")
	if err := tree.Variant(Hangs, dir); err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, filepath.Join(dir, "1bit"), nil, "-m", tree.Model(Plain), "--port", strconv.Itoa(port))
	await(t, "the start of loading", func() bool { return strings.Contains(s.log.String(), "loading model") })
	if _, _, err := ask(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port)+"/health", ""); err == nil {
		t.Error("it listens")
	}
	if len(children(t, s.cmd.Process.Pid)) != 1 {
		t.Error("it has ended")
	}
}

func TestVariantNaN1ServesItsOwnModel(t *testing.T) {
	tree := Require(t)
	dir := filepath.Join(t.TempDir(), "tree")
	if err := tree.Variant(NaN1, dir); err != nil {
		t.Fatal(err)
	}
	s := serve(t, filepath.Join(dir, "1bit"), nil, "-m", tree.Model(Plain))
	a := complete(t, s.base, "hello")
	if a.nulls() != tokensAsked || !printable(a.Content) {
		t.Errorf("%d null log-probabilities under %q, want %d under printable text", a.nulls(), a.Content, tokensAsked)
	}
}

func TestVariantUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	if err := (&Tree{}).Variant("odd", dir); err == nil {
		t.Error("no error")
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left %s", dir)
	}
}
