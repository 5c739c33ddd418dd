package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func hex(n int) string { return fmt.Sprintf("%02x", n%251) }

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// script makes a program of a few lines of shell. No other thread may fork while the file is open for writing.
func script(t *testing.T, root, path, text string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	write(t, root, path, "#!/bin/sh\nPATH=/usr/bin:/bin\n"+text+"\n")
	path = filepath.Join(root, path)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
