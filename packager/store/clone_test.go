package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"golang.org/x/sys/unix"
)

const bigSize = 8 << 20

// bigSample is a package with four files of noise, of which vary of them
// differ from those of another id.
func bigSample(id string, vary int) (*packager.Manifest, map[string]string) {
	m, contents := sample(id, "same")
	for i := range 4 {
		seed := [32]byte{byte(i + 1)}
		if i < vary {
			copy(seed[1:], id)
		}
		b := make([]byte, bigSize)
		_, _ = rand.NewChaCha8(seed).Read(b)
		name := fmt.Sprintf("noise-%d", i)
		sum := sha256.Sum256(b)
		contents[name] = string(b)
		m.Files = append(m.Files, packager.File{Path: name, Type: packager.TypeFile, Mode: 0o644, Size: bigSize, SHA256: hex.EncodeToString(sum[:])})
	}
	return m, contents
}

func installBig(t *testing.T, s *Store, id string, vary int) *Package {
	t.Helper()
	m, contents := bigSample(id, vary)
	p, _, err := s.Install(context.Background(), archive(t, m, contents), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantVerified(t *testing.T, s *Store, p *Package) {
	t.Helper()
	if v, err := s.Verify(context.Background(), p, nil); err != nil || !v.OK {
		t.Errorf("%s: %+v, %v", p.Name, v, err)
	}
}

// wantOwnInodes checks that no file of a package has another name.
func wantOwnInodes(t *testing.T, p *Package) {
	t.Helper()
	for _, name := range entryPaths(p) {
		info, err := os.Lstat(filepath.Join(p.Path, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); !info.IsDir() && st.Nlink != 1 {
			t.Errorf("%s has %d names", name, st.Nlink)
		}
	}
}

// Identical files of two packages share their blocks, and nothing else.
func TestInstallSharesBlocks(t *testing.T) {
	for _, c := range []struct {
		kind, size string
		options    []string
		shares     bool
	}{
		{"xfs", "400M", []string{"-m", "reflink=1"}, true},
		{"btrfs", "300M", nil, true},
		{"xfs", "400M", []string{"-m", "reflink=0"}, false},
		{"ext4", "200M", nil, false},
	} {
		t.Run(c.kind+strings.Join(c.options, ""), func(t *testing.T) {
			at := requireDisk(t, c.kind, c.size, c.options...)
			s := diskStore(t, at)
			first := installBig(t, s, "a", 0)
			before := freeBytes(t, at)
			second := installBig(t, s, "b", 1)
			took := before - freeBytes(t, at)
			if shared := took < 2*bigSize; shared != c.shares || took < bigSize/2 {
				t.Errorf("of %d bytes %d were taken; shared: %v", 4*bigSize, took, shared)
			}
			for _, p := range []*Package{first, second} {
				wantVerified(t, s, p)
				wantOwnInodes(t, p)
			}
			// What is written through one name stays there.
			writable(first.Path)
			if err := os.Chmod(filepath.Join(first.Path, "noise-3"), 0o644); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(filepath.Join(first.Path, "noise-3"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("damage"), 4096); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			wantVerified(t, s, second)
			if err := s.Remove(context.Background(), first, nil); err != nil {
				t.Fatal(err)
			}
			wantVerified(t, s, second)
			wantEmptyStaging(t, s)
		})
	}
}

// A file that was damaged without a trace is not taken over.
func TestInstallSharesNoDamage(t *testing.T) {
	at := requireDisk(t, "xfs", "400M", "-m", "reflink=1")
	s := diskStore(t, at)
	first := installBig(t, s, "a", 0)
	damage := func(name string, size int64, keepTime bool) {
		t.Helper()
		path := filepath.Join(first.Path, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[4<<20]++
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, info.Mode()); err != nil {
			t.Fatal(err)
		}
		if keepTime {
			err = os.Chtimes(path, time.Time{}, info.ModTime())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	damage("noise-1", bigSize, true)
	damage("noise-2", bigSize, false)
	damage("noise-3", bigSize-1, true)
	before := freeBytes(t, at)
	second := installBig(t, s, "b", 0)
	wantVerified(t, s, second)
	// noise-0 is shared whole, noise-1 but for the piece that differs.
	if took := before - freeBytes(t, at); took < 2*bigSize || took > 5*bigSize/2 {
		t.Errorf("%d bytes were taken", took)
	}
	if a, b := readFile(t, first, "noise-1"), readFile(t, second, "noise-1"); bytes.Equal(a, b) {
		t.Error("the damage was repaired, or spread")
	}
}

func readFile(t *testing.T, p *Package, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.Path, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is expected to be shared needs no room.
func TestInstallSharesOnAlmostFullDisk(t *testing.T) {
	at := requireDisk(t, "xfs", "320M", "-m", "reflink=1")
	s := diskStore(t, at)
	installBig(t, s, "a", 0)
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(at, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	if err := unix.Fallocate(int(filler.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-(6<<20)); err != nil {
		t.Fatal(err)
	}
	wantVerified(t, s, installBig(t, s, "b", 0))
}
