package packager

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtractInterrupted ends the context at every step. That is no damage,
// whatever was half written then.
func TestExtractInterrupted(t *testing.T) {
	m := example()
	big := map[string]string{}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Type == TypeFile {
			big[f.Path] = strings.Repeat(f.Path, 1<<17)
			f.Size, f.SHA256 = int64(len(big[f.Path])), sha(big[f.Path])
		}
	}
	b := archiveOf(t, m, big)
	steps := 0
	for stop := 1; ; stop++ {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		err := extractInto(ctx, t, b, func(int64, int64) {
			if n++; n == stop {
				cancel()
			}
		})
		cancel()
		if n < stop {
			if err != nil {
				t.Errorf("without an interruption: %v", err)
			}
			break
		}
		steps++
		// The last step may be over before the end of the context is seen.
		if err != nil && (!errors.Is(err, context.Canceled) || errors.Is(err, ErrIntegrity)) {
			t.Errorf("interrupted at step %d: %v", stop, err)
		}
	}
	if steps < 10 {
		t.Errorf("only %d steps", steps)
	}
}

func extractInto(ctx context.Context, t *testing.T, b []byte, progress func(done, total int64)) error {
	t.Helper()
	dir := t.TempDir()
	defer func() {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(p, 0o755)
			}
			return err
		})
	}()
	r, err := NewReader(bytes.NewReader(b), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return r.Extract(ctx, root, ExtractOptions{Progress: progress})
}
