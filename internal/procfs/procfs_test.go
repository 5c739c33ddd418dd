package procfs

import (
	"os"
	"path/filepath"
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
