package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"golang.org/x/sys/unix"
)

func TestInstall(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	s := newStore(t)
	m, contents := sample("3092596", "a")
	var last, total int64
	p, already, err := s.Install(context.Background(), archive(t, m, contents), func(d, n int64) { last, total = d, n })
	if err != nil || already {
		t.Fatal(p, already, err)
	}
	if last != m.Size() || total != m.Size() {
		t.Errorf("progress ended at %d of %d, want %d", last, total, m.Size())
	}
	digest, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "hrx-3092596" || p.Digest != digest || p.Path != filepath.Join(s.Dir, "1bit-hrx-3092596") || p.State != StateOK || p.Imported || p.Size != m.Size() || p.InstalledAt.IsZero() {
		t.Errorf("package %+v", p)
	}
	for name, want := range map[string]fs.FileMode{
		".": 0o555 | fs.ModeDir, "hrx/llama/bin": 0o555 | fs.ModeDir, "1bit": 0o555, "hrx/llama/bin/libx.so.1": 0o444, packager.ManifestName: 0o444,
	} {
		if info, err := os.Lstat(filepath.Join(p.Path, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	for name, content := range contents {
		if b, err := os.ReadFile(filepath.Join(p.Path, name)); err != nil || string(b) != content {
			t.Errorf("%s has other content, %v", name, err)
		}
	}
	wantList(t, s, "hrx-3092596 ok")
	wantEmptyStaging(t, s)
}

func TestInstallAgain(t *testing.T) {
	s := newStore(t)
	a := sampleArchive(t, "x", "a")
	first, _, err := s.Install(context.Background(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	// As a process leaves it that dies between the rename and the end.
	if err := os.Chmod(first.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	p, already, err := s.Install(context.Background(), a, nil)
	if err != nil || !already || p.Digest != first.Digest {
		t.Errorf("got %+v, %v, %v", p, already, err)
	}
	wantList(t, s, "hrx-x ok")
	if _, _, err := s.Install(context.Background(), sampleArchive(t, "x", "b"), nil); !errors.Is(err, ErrDifferent) {
		t.Errorf("another package of that name: %v", err)
	}
	writable(first.Path)
	if err := os.Remove(filepath.Join(first.Path, "1bit")); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Install(context.Background(), a, nil)
	if !errors.Is(err, packager.ErrIntegrity) || !strings.Contains(err.Error(), `"1bit" is missing): remove it`) {
		t.Errorf("over a broken one: %v", err)
	}
	wantEmptyStaging(t, s)
}

func TestInstallWhereSomethingElseIs(t *testing.T) {
	s := newStore(t)
	keep := write(t, filepath.Join(s.Dir, "1bit-hrx-x", "1bit"), "precious")
	if _, _, err := s.Install(context.Background(), sampleArchive(t, "x", "a"), nil); !errors.Is(err, ErrDifferent) || !strings.Contains(err.Error(), "import it") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(keep); err != nil || string(b) != "precious" {
		t.Errorf("it was touched: %q, %v", b, err)
	}
	wantEmptyStaging(t, s)
}

// A bad archive leaves the store as it was.
func TestInstallRefusesBadArchives(t *testing.T) {
	s := newStore(t)
	install(t, s, "good", "a")
	b, err := os.ReadFile(sampleArchive(t, "bad", "b"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(b)
	flipped[len(b)-3] ^= 1
	for name, bad := range map[string][]byte{
		"empty": nil, "cut": b[:len(b)-20], "cut early": b[:30], "more": append(bytes.Clone(b), 'x'), "flipped": flipped, "no archive": []byte("hello"),
	} {
		file := write(t, filepath.Join(t.TempDir(), "a.tar.zst"), string(bad))
		if _, _, err := s.Install(context.Background(), file, nil); !errors.Is(err, packager.ErrIntegrity) {
			t.Errorf("%s: got %v", name, err)
		}
		wantEmptyStaging(t, s)
	}
	if _, _, err := s.Install(context.Background(), filepath.Join(s.Dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing archive: got %v", err)
	}
	wantList(t, s, "hrx-good ok")
}

func TestInstallStopsWithContext(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, _, err := s.Install(ctx, sampleArchive(t, "x", "a"), func(done, total int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantList(t, s)
	wantEmptyStaging(t, s)
}

// Several processes may install the same package at once: one does, all
// succeed.
func TestInstallTogether(t *testing.T) {
	s := newStore(t)
	a := sampleArchive(t, "x", "a")
	var group sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 8 {
		group.Go(func() {
			_, already, err := Open(s.Dir, s.StateDir).Install(context.Background(), a, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if !already {
				fresh++
			}
		})
	}
	group.Wait()
	if fresh != 1 {
		t.Errorf("%d of them installed it", fresh)
	}
	wantList(t, s, "hrx-x ok")
	wantEmptyStaging(t, s)
}

func TestInstallIntoUnwritable(t *testing.T) {
	s := newStore(t)
	write(t, s.Dir, "a file where the data home belongs")
	if _, _, err := s.Install(context.Background(), sampleArchive(t, "x", "a"), nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v", err)
	}
	s = newStore(t)
	target := t.TempDir()
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, s.staging()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Install(context.Background(), sampleArchive(t, "x", "a"), nil); err == nil {
		t.Error("staging that is a link was used")
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) != 0 {
		t.Errorf("something was written through the link: %v, %v", entries, err)
	}
}

// What nobody holds is swept, what somebody holds stays.
func TestSweep(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	alive, err := s.newWork(ctx, kindInstall)
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(s.staging(), "install-dead")
	write(t, filepath.Join(dead, "1bit-hrx-x/hrx/f"), "x")
	for _, dir := range []string{"1bit-hrx-x/hrx", "1bit-hrx-x", ""} {
		if err := os.Chmod(filepath.Join(dead, dir), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(s.staging(), "stray"), "x")
	s.sweep(ctx)
	entries, err := os.ReadDir(s.staging())
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(alive.path) {
		t.Errorf("staging holds %v, %v", entries, err)
	}
	if err := alive.close(); err != nil {
		t.Fatal(err)
	}
	wantEmptyStaging(t, s)
}

// A link in a work folder is deleted, not followed.
func TestSweepFollowsNoLink(t *testing.T) {
	s := newStore(t)
	keep := write(t, filepath.Join(t.TempDir(), "keep", "f"), "x")
	if err := os.MkdirAll(filepath.Join(s.staging(), "install-dead"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"install-dead/link", "install-link"} {
		if err := os.Symlink(filepath.Dir(keep), filepath.Join(s.staging(), name)); err != nil {
			t.Fatal(err)
		}
	}
	s.sweep(context.Background())
	wantEmptyStaging(t, s)
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}

func TestInstallNeedsSpace(t *testing.T) {
	s := newStore(t)
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil {
		t.Fatal(err)
	}
	m, _ := sample("x", "a")
	m.Files[0].Size = int64(st.Bavail) * st.Bsize
	if err := s.checkSpace(m, nil); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v", err)
	}
	m.Files[0].Size = 1
	if err := s.checkSpace(m, nil); err != nil {
		t.Error(err)
	}
}

// TestInstallKeepsOutOfARemoval holds the lock as a removal does, in the moment
// between its chmod and its rename.
func TestInstallKeepsOutOfARemoval(t *testing.T) {
	s := newStore(t)
	p := install(t, s, "a", "")
	unlock, err := s.lock(context.Background(), true, "remove")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		ctx, cancel := context.WithTimeout(context.Background(), 4*lockPoll)
		_, _, err := s.Install(ctx, sampleArchive(t, id, ""), nil)
		cancel()
		if !errors.Is(err, ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("install %s during a removal: %v", id, err)
		}
	}
	if info, err := os.Lstat(p.Path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the removal found its folder changed: %v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(s.Dir, "1bit-hrx-b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("installed without the lock: %v", err)
	}
	unlock()
	for _, id := range []string{"a", "b"} {
		p, _, err := s.Install(context.Background(), sampleArchive(t, id, ""), nil)
		if err != nil || p.State != StateOK {
			t.Errorf("install %s afterwards: %v, %v", id, p, err)
		}
	}
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) != 0 {
		t.Errorf("left in staging: %v, %v", left, err)
	}
}
