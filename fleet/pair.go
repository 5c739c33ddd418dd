package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// The staging names. Neither ends in ".conf", so systemd reads neither.
const (
	nextName     = dropInName + ".new"
	prevNextName = prevName + ".new"
)

// pair is our files in one drop-in folder: the active one, its .prev, and the staged ones of a switch under way.
// Its methods want the folder's lock.
type pair struct{ dir string }

func (p pair) path(name string) string { return filepath.Join(p.dir, name) }

// read returns the bytes of one of the files, nil when it is not there.
func (p pair) read(name string) ([]byte, error) {
	info, err := os.Lstat(p.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(p.path(name), info.Mode())
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > maxDropIn {
		return nil, fmt.Errorf("%w: %s has %d bytes", errNotOurs, p.path(name), info.Size())
	}
	return os.ReadFile(p.path(name))
}

// notAFile says in words what lies where a file should.
func notAFile(path string, mode fs.FileMode) error {
	kind := "not a regular file"
	switch {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeSymlink != 0:
		kind = "a link"
	}
	return fmt.Errorf("%w: %s is %s, which this program neither follows nor replaces: remove it", ErrRefused, path, kind)
}

// maxDropIn bounds what is read as a file of ours.
const maxDropIn = 1 << 20

// decode reads one of the files, which must be exactly as we write it; nil when it is not there.
func (p pair) decode(name string) (*DropIn, error) {
	data, err := p.read(name)
	if err != nil || data == nil {
		return nil, err
	}
	d, err := DecodeDropIn(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.path(name), err)
	}
	return d, nil
}

// stage writes the next pair under its staging names: from here on nothing needs space. A nil prev stages none.
func (p pair) stage(next, prev []byte) error {
	if prev != nil {
		if err := atomicfile.Write(p.path(prevNextName), prev, 0o644); err != nil {
			return err
		}
	}
	return atomicfile.Write(p.path(nextName), next, 0o644)
}

// swap puts the staged pair in place, .prev first. What was there takes the staging names.
func (p pair) swap() error {
	if err := p.trade(prevNextName, prevName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.trade(nextName, dropInName)
}

// renew is stage, swap and clean in one, for a change that is not taken back once it is in place; where it cannot get
// there it goes back to old, the bytes that the active file had.
func (p pair) renew(next, prev, old []byte) error {
	err := p.stage(next, prev)
	if err == nil {
		err = p.swap()
	}
	if err != nil {
		if rerr := p.revert(next, old); rerr != nil {
			return errors.Join(err, rerr)
		}
		return errors.Join(err, p.clean())
	}
	_ = p.clean() // the next command does it else
	return nil
}

// revert goes back from wherever stage and swap got to: next are the staged bytes of the active file, old those it
// had before (nil for none). Nothing is removed unless the old bytes are seen in place. The active file goes first,
// so that a crash between the two reads as "halfway". What was staged stays: as long as it is there, the next command
// knows that the manager may have loaded something else.
func (p pair) revert(next, old []byte) error {
	now, err := p.read(dropInName)
	if err != nil {
		return err
	}
	if sum(now) == sum(next) {
		if old != nil {
			err = atomicfile.Exchange(p.path(nextName), p.path(dropInName))
		} else {
			err = atomicfile.Move(p.path(dropInName), p.path(nextName))
		}
		// The rename may have happened although its folder could not be synced.
		if now, rerr := p.read(dropInName); rerr != nil || sum(now) != sum(old) {
			return errors.Join(err, rerr)
		}
	}
	return errors.Join(err, p.backPrev())
}

// backPrev undoes the first half of a swap, if it happened.
func (p pair) backPrev() error {
	staged, err := p.decode(nextName)
	if err != nil {
		return err
	}
	data, err := p.read(prevName)
	if err != nil {
		return err
	}
	prev, _, _ := readDropIn(data) // one that a rollback put away may have a person's lines
	if staged == nil || prev == nil || prev.Generation != staged.Generation {
		return nil
	}
	err = atomicfile.Exchange(p.path(prevNextName), p.path(prevName))
	if errors.Is(err, fs.ErrNotExist) { // there was none before
		err = atomicfile.Move(p.path(prevName), p.path(prevNextName))
	}
	return err
}

// trade exchanges a staged file with the one in its place, or moves it there when the place is free.
func (p pair) trade(staged, place string) error {
	err := atomicfile.Exchange(p.path(staged), p.path(place))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Move(p.path(staged), p.path(place))
}

// clean removes what is staged.
func (p pair) clean() error { return atomicfile.RemoveThese(p.dir, nextName, prevNextName) }

// settle brings the folder of a switch that was cut off before it was in place back to the state before it, and
// removes leftovers of atomicfile. It decides by the generations in the files alone; see the table in the package's
// comment. A switch that is in place is left so, and inPlace is true: the caller finishes it, or goes back. changed
// tells whether there was anything else to do.
func (p pair) settle() (changed, inPlace bool, err error) {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	staging := false
	for _, e := range entries {
		switch name := e.Name(); {
		case atomicfile.IsTemp(name) && ours(name):
			if err := os.Remove(p.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, false, err
			}
		case name == nextName || name == prevNextName:
			if !e.Type().IsRegular() {
				return false, false, notAFile(p.path(name), e.Type())
			}
			staging = true
		}
	}
	if !staging {
		return false, false, nil
	}
	if p.inPlace() {
		return false, true, nil
	}
	if err := p.backPrev(); err != nil && !errors.Is(err, errNotOurs) {
		return true, false, err
	}
	return true, false, p.clean()
}

// inPlace tells whether the swap of what is staged has happened: then what is staged is older than what is active.
func (p pair) inPlace() bool {
	data, errActive := p.read(dropInName)
	active, _, errRead := readDropIn(data) // a person may have edited it since
	staged, errStaged := p.decode(nextName)
	if errActive != nil || errRead != nil || errStaged != nil || active == nil || staged == nil {
		return false
	}
	return active.Generation > staged.Generation
}

// ours tells whether the name of a temporary file is made from one of our names.
func ours(temp string) bool {
	for _, name := range []string{dropInName, prevName, nextName, prevNextName, holdName} {
		if len(temp) > len(name)+2 && temp[1:len(name)+2] == name+"." {
			return true
		}
	}
	return false
}

// sum is the SHA-256 of a file's bytes in hex, "" of a file that is not there.
func sum(data []byte) string {
	if data == nil {
		return ""
	}
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// setAside renames what is in the way of one of our names to a free name beside it, whatever it is. A link is not
// followed.
func (p pair) setAside(name string) (as string, err error) {
	for i := 1; i < 100; i++ {
		as = fmt.Sprintf("%s.%d", name, i)
		if err = atomicfile.RenameNew(p.path(name), p.path(as)); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s is in the way and cannot be moved, remove it: %w", ErrRefused, p.path(name), err)
	}
	return as, atomicfile.SyncDir(p.dir)
}

// removePrev removes .prev, if there is one.
func (p pair) removePrev() error {
	if err := atomicfile.Remove(p.path(prevName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeFolder removes the folder when nothing else is in it.
func (p pair) removeFolder() error {
	if os.Remove(p.dir) != nil {
		return nil // somebody's files are in it
	}
	return atomicfile.SyncDir(filepath.Dir(p.dir))
}
