package packager

import (
	"context"
	"fmt"
	"os"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	// maxUnsynced is how many files are kept open until they are synced.
	maxUnsynced = 512
	// syncers is how many syncs run at a time. They wait for the disk, which
	// serves all that wait in one go.
	syncers = 32
)

// unsynced are the files and folders that were written and are not synced
// yet, one by one or, where there are many, with their file system. A file
// that is to be synced stays open until then: the kernel tells an error of
// writing to those who have the file open, and may forget it with the file.
type unsynced struct {
	off   bool       // nothing is to be synced
	whole *wholeSync // of the file system, nil where each file is synced

	mu    sync.Mutex
	files []*newFile
	dirs  []unsyncedDir
}

// newUnsynced chooses how what is extracted below root will be synced.
func newUnsynced(root *os.Root, m *Manifest, off bool) (*unsynced, error) {
	u := &unsynced{off: off}
	if off {
		return u, nil
	}
	var err error
	u.whole, err = newWholeSync(root, m)
	return u, err
}

type unsyncedDir struct {
	root *os.Root
	path string
}

// add takes over an open file.
func (u *unsynced) add(f *newFile) error {
	if u.off || u.whole != nil {
		return f.close()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files = append(u.files, f)
	return nil
}

// addDir takes note of a folder, which is opened again to be synced: there may
// be more folders than files may be open.
func (u *unsynced) addDir(root *os.Root, path string) {
	u.dirs = append(u.dirs, unsyncedDir{root, path})
}

// flushIfMany syncs and closes the files if there are many.
func (u *unsynced) flushIfMany(ctx context.Context) error {
	u.mu.Lock()
	if len(u.files) < maxUnsynced {
		u.mu.Unlock()
		return nil
	}
	files := u.files
	u.files = nil
	u.mu.Unlock()
	return u.syncAll(ctx, files, nil)
}

// flush syncs everything.
func (u *unsynced) flush(ctx context.Context) error {
	switch {
	case u.off:
		return ctx.Err()
	case u.whole != nil:
		return u.whole.run()
	}
	files, dirs := u.files, u.dirs
	u.files, u.dirs = nil, nil
	return u.syncAll(ctx, files, dirs)
}

// close gives up what is left.
func (u *unsynced) close() {
	for _, f := range u.files {
		_ = f.close()
	}
	u.whole.close()
}

func (u *unsynced) syncAll(ctx context.Context, files []*newFile, dirs []unsyncedDir) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(syncers)
	for _, f := range files {
		group.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = f.sync()
			}
			if cerr := f.close(); err == nil {
				err = cerr
			}
			return err
		})
	}
	for _, d := range dirs {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return syncDir(d.root, d.path)
		})
	}
	return group.Wait()
}

func syncDir(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder %s: %w", path.Join(root.Name(), name), err)
	}
	return nil
}
