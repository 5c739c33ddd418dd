package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(path, []byte(" MemTotal:   129024 kB\nMemAvailable: 88815411 kB\nHuge: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, ok := Counter(path, "MemAvailable:"); n != 88815411 || !ok {
		t.Error(n, ok)
	}
	for _, name := range []string{"Huge:", "Mem", "kB"} {
		if n, ok := Counter(path, name); ok {
			t.Error(name, n)
		}
	}
	if got := FirstLine(path); got != "MemTotal:   129024 kB" {
		t.Error(got)
	}
	if FirstLine(path+"x") != "" || Text(filepath.Dir(path)) != "" {
		t.Error("something was read where nothing is")
	}
}

// What hangs, or has no end, is refused.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	fifo, file, big := filepath.Join(dir, "fifo"), filepath.Join(dir, "file"), filepath.Join(dir, "big")
	err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(file, []byte("a\n"), 0o600), os.WriteFile(big, make([]byte, most+1), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Read(file); string(b) != "a\n" || err != nil {
		t.Errorf("a file: %q, %v", b, err)
	}
	for _, path := range []string{fifo, "/dev/zero", big} {
		if _, err := Read(path); !errors.Is(err, ErrNoFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Read(dir); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Read(file + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

func FuzzCounter(f *testing.F) {
	f.Add("MemAvailable: 12 kB\n", "MemAvailable:")
	f.Add("a 99999999999999999999\na 1", "a")
	f.Add("\x00 \r\n", "")
	f.Fuzz(func(t *testing.T, text, name string) {
		if n, ok := counter(text, name); !ok && n != 0 {
			t.Errorf("%d is told and said not to be", n)
		}
	})
}
