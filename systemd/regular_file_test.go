package systemd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenRegular watches that nothing is opened but regular files.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	writeFile(t, file, "text")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	for _, path := range []string{pipe, file} {
		if _, err := unix.InotifyAddWatch(watch, path, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	opened := func() bool {
		n, err := unix.Read(watch, make([]byte, 4096))
		return err == nil && n > 0
	}
	if f, info, err := OpenRegular(link); f != nil || err != nil || info.Mode()&fs.ModeNamedPipe == 0 || opened() {
		t.Errorf("a pipe: %v, %v, %v", f, info, err)
	}
	if data, err := readFile(file); string(data) != "text" || err != nil || !opened() {
		t.Errorf("a file: %q, %v", data, err)
	}
	if _, _, err := OpenRegular(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if f, _, err := OpenRegular("/proc/kmsg"); f != nil || err != nil {
		t.Errorf("the kernel's log: %v, %v", f, err)
	}
	// systemd takes any device for an empty unit file; an environment file is read.
	if data, err := readFile("/dev/zero"); len(data) > 0 || err != nil {
		t.Errorf("a device: %q, %v", data, err)
	}
	for name, want := range map[string]error{"/dev/null": nil, "/dev/zero": errNoFile, pipe: errNoFile} {
		if files, err := ReadEnvironmentFiles(name); err != nil || len(files) != 1 || !errors.Is(files[0].Err, want) {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
}
