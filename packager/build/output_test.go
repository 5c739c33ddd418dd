package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Both ways to make a file keep to the same rules.
func TestCreate(t *testing.T) {
	for name, create := range map[string]func(string) (*os.File, func(string) error, error){"unnamed": createUnnamed, "named": createNamed} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, c := range []struct {
				to   string
				want error
			}{{"", nil}, {filepath.Join(dir, "a"), nil}, {filepath.Join(dir, "a"), fs.ErrExist}} {
				f, publish, err := create(dir)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString("content of " + c.to); err != nil {
					t.Fatal(err)
				}
				if err := publish(c.to); !errors.Is(err, c.want) {
					t.Errorf("publish(%q): %v, want %v", c.to, err, c.want)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
				t.Errorf("the folder holds %v, %v", entries, err)
			}
			if info, err := os.Stat(filepath.Join(dir, "a")); err != nil || info.Mode() != 0o644 {
				t.Errorf("mode %v, %v", info, err)
			}
		})
	}
}

func TestWriteOutputLeavesNothing(t *testing.T) {
	full := errors.New("no space left")
	dir := t.TempDir()
	_, err := writeOutput(context.Background(), filepath.Join(dir, "a"), func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		return full
	}, nil)
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind %v, %v", entries, err)
	}
}
