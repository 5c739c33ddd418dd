package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager/store"
)

// diskSpace looks whether the next package and the next switch would have room.
func diskSpace() Check {
	return Check{
		Name:   "disk-space",
		Reason: "The next package is about as large as the largest installed one, and without room it is not installed; a switch writes a few files, and a full disk refuses it.",
		Remedy: "See what is not needed with 1bit pkg gc --dry-run, and remove it with 1bit pkg gc.",
		find: func(_ context.Context, l *look, add adder) error {
			if len(l.Hosts) == 0 {
				return nil
			}
			h := l.Hosts[0]
			packages, err := l.packages()
			unseen := []error{err}
			if p := largest(packages, h.Store.Dir); p != nil {
				need, inodes := room(p)
				unseen = append(unseen, roomFor(h.Store.Dir, "a package of the size of "+p.Name, need, inodes, add))
			}
			for _, dir := range []string{h.UnitDir, h.StateDir} {
				unseen = append(unseen, roomFor(dir, "a switch", switchRoom, 4, add))
			}
			return errors.Join(unseen...)
		},
	}
}

// switchRoom is what a switch writes, in bytes, and some.
const switchRoom = 64 << 10

// largest is the largest package of a store, nil where it has none.
func largest(packages []*store.Package, dir string) *store.Package {
	var most *store.Package
	for _, p := range packages {
		if within(p.Path, dir) && (most == nil || p.Size > most.Size) {
			most = p
		}
	}
	return most
}

// room is what a package takes: its files in whole blocks of 4 KiB, and their inodes.
func room(p *store.Package) (bytes, inodes uint64) {
	const block = 4 << 10
	for i := range p.Manifest.Files {
		bytes += (uint64(p.Manifest.Files[i].Size)+block-1)/block*block + block
	}
	return bytes + 1<<20, uint64(len(p.Manifest.Files)) + 3
}

// roomFor compares what something needs with what the file system of a folder has.
func roomFor(dir, what string, need, inodes uint64, add adder) error {
	at := nearest(dir)
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return fmt.Errorf("look for room: %w", &fs.PathError{Op: "statfs", Path: at, Err: err})
	}
	switch free := st.Bavail * uint64(st.Bsize); {
	case free < need:
		add(dir, "", "%s needs %s there, and %s are free", what, ui.Size(int64(need)), ui.Size(int64(free)))
	case st.Files > 0 && st.Ffree < inodes: // a file system without a fixed number of inodes says that it has none
		add(dir, "", "%s needs %d inodes there, and %d are free", what, inodes, st.Ffree)
	}
	return nil
}
