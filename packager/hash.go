package packager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// HashFiles fills in the digests of the regular files below root, several at a
// time. The error wraps [ErrChanged] where a file has not the size that it was
// listed with.
func HashFiles(ctx context.Context, root *os.Root, files []File) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range files {
		f := &files[i]
		if f.Type != TypeFile {
			continue
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := root.Open(filepath.FromSlash(f.Path))
			if err != nil {
				return err
			}
			defer r.Close()
			var n int64
			f.SHA256, err = HashReader(ctx, r, func(k int) { n += int64(k) })
			if err == nil && n != f.Size {
				err = fmt.Errorf("%s %w: try again when nothing writes to it", f.Path, ErrChanged)
			}
			return err
		})
	}
	return group.Wait()
}

// HashReader is the SHA-256 of all that r gives, in hex. count, which may be
// nil, is told of every piece's length in bytes.
func HashReader(ctx context.Context, r io.Reader, count func(int)) (string, error) {
	sum := sha256.New()
	buf := make([]byte, 16<<10) // most files are small, and there are thousands
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buf)
		sum.Write(buf[:n])
		if count != nil && n > 0 {
			count(n)
		}
		if n == len(buf) && n < 256<<10 {
			buf = make([]byte, 256<<10)
		}
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
