package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/1bit-systems/pkg/systemd"
)

// openToOthers looks whether other accounts can change what decides which program runs.
func openToOthers() Check {
	return Check{
		Name:   "open-to-others",
		Reason: "Whoever can write the policy, a unit, a file of its environment or a package decides what runs as the service's account, whatever the policy says.",
		Remedy: "Take the right to write from the others: chmod go-w PATH",
		find: func(_ context.Context, l *look, add adder) error {
			if len(l.Hosts) == 0 {
				return nil
			}
			h := l.Hosts[0]
			if h.Scope == systemd.ScopeSystem && l.UID != 0 {
				return nil // what belongs to root is root's to look at
			}
			accounts, groups, err := l.accounts()
			if err != nil {
				return err
			}
			o := &opening{look: l, accounts: accounts, groups: groups, seen: map[string]bool{}, add: add}
			if dir := filepath.Dir(l.Policy.File); filepath.Base(dir) == "1bit" { // which is ours, as the file is
				o.path(dir, l.UID)
			}
			for _, path := range []string{l.Policy.File, h.UnitDir, h.Store.Dir, h.StateDir} {
				o.path(path, l.UID)
			}
			services, err := l.services()
			o.unseen = append(o.unseen, err)
			for _, s := range services {
				if s.host != h || s.Loaded == nil {
					continue
				}
				for _, path := range append([]string{s.Loaded.FragmentPath}, s.Loaded.DropInPaths...) {
					o.path(path, l.UID)
				}
				o.environment(s)
			}
			return errors.Join(o.unseen...)
		},
	}
}

// opening is a look at who may write what.
type opening struct {
	*look
	accounts []account
	groups   map[string]int
	seen     map[string]bool // what was looked at, and for whom it may be open
	add      adder
	unseen   []error
}

// environment looks at the files that a service's environment is read from. The account that the service runs as may
// write them: it decides for itself alone.
func (o *opening) environment(s service) {
	if len(s.Loaded.EnvironmentFiles) == 0 {
		return
	}
	who, err := o.runsAs(s, o.accounts, o.groups)
	if err != nil {
		o.unseen = append(o.unseen, err)
		return
	}
	for _, file := range s.Loaded.EnvironmentFiles {
		paths, _ := filepath.Glob(file.Path)
		if paths == nil && !strings.ContainsAny(file.Path, `*?[\`) {
			paths = []string{file.Path}
		}
		for _, path := range paths {
			o.path(path, who.uid)
		}
	}
}

// path looks at a path, every folder on the way to it, and where links on it lead. It may be written by root, this
// account and one more.
func (o *opening) path(path string, also int) {
	if !filepath.IsAbs(path) {
		return
	}
	way, err := trail(nearest(path))
	if err != nil {
		o.unseen = append(o.unseen, fmt.Errorf("who may write %s: %w", path, err))
	}
	for i, at := range slices.Backward(way) {
		if key := fmt.Sprint(also, at); !o.seen[key] {
			o.seen[key] = true
			o.at(at, path, i == len(way)-1 && nearest(path) == filepath.Clean(path), also)
		}
	}
}

// at looks at one file or folder on the way to a path, which it may be itself.
func (o *opening) at(at, path string, itself bool, also int) {
	info, err := os.Stat(at)
	var who string
	if err == nil {
		who, err = o.othersIn(info, o.accounts, also)
	}
	if err == nil && who == "" && info.Mode()&0o020 != 0 && info.Mode()&fs.ModeSticky == 0 {
		if gid := int(info.Sys().(*syscall.Stat_t).Gid); nameOfGroup(o.groups, gid) == "" {
			err = fmt.Errorf("the group %d is not in /etc/group", gid)
		}
	}
	if err != nil {
		o.unseen = append(o.unseen, fmt.Errorf("who may write %s: %w", at, err))
	}
	if who == "" || o.seen[at] {
		return
	}
	o.seen[at] = true
	sudo := ""
	if int(info.Sys().(*syscall.Stat_t).Uid) != o.UID {
		sudo = "sudo "
	}
	owns := strings.HasPrefix(who, "the account")
	switch {
	case owns && itself:
		o.add(at, fmt.Sprintf("sudo chown %s %s", o.User, at), "%s may write it: it is the owner", who)
	case owns: // which is not to be taken away from it
		o.add(at, fmt.Sprintf("let %s lie where all folders above it belong to root or %s", path, o.User), "%s may exchange what is in it, also what leads to %s: it is the owner", who, path)
	case itself || !info.IsDir():
		o.add(at, sudo+"chmod go-w "+at, "%s may write it: its mode is %v", who, info.Mode())
	default: // others may have to write there, and keep their hands off what is not theirs
		o.add(at, sudo+"chmod +t "+at, "%s may exchange what is in it, also what leads to %s: its mode is %v", who, path, info.Mode())
	}
}

// mostLinks is how many links the kernel follows on the way to a file.
const mostLinks = 40

// trail is what lies on the way to a path: each folder, and each that a link leads through, from the root to the file. It
// ends where there is nothing.
func trail(path string) (way []string, err error) {
	at, rest, links := "/", strings.Split(path, "/"), 0
	way = []string{at}
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return way, nil
		case err != nil:
			return way, err
		case info.Mode()&fs.ModeSymlink == 0:
			if at = next; !slices.Contains(way, at) {
				way = append(way, at)
			}
			continue
		}
		if links++; links > mostLinks {
			return way, &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return way, err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return way, nil
}

// othersIn says who else than this account, root and one more may write a file or folder, "" for nobody. A folder with the
// sticky bit, such as /tmp, lets nobody replace the files of others.
func (l *look) othersIn(info fs.FileInfo, accounts []account, also int) (string, error) {
	if !info.IsDir() && !info.Mode().IsRegular() { // such as /dev/null, which masks a unit
		return "", nil
	}
	uid, gid, err := l.owner(info)
	trusted := func(uid int) bool { return uid == 0 || uid == l.UID || uid == also }
	switch {
	case err != nil:
		return "", err
	case !trusted(uid):
		if a, err := find(accounts, fmt.Sprint(uid)); err == nil {
			return "the account " + a.name, nil
		}
		return fmt.Sprintf("the account of uid %d", uid), nil
	case info.IsDir() && info.Mode()&fs.ModeSticky != 0:
		return "", nil
	case info.Mode()&0o002 != 0:
		return "every account", nil
	case info.Mode()&0o020 != 0:
		var members []string
		for _, a := range accounts {
			if !trusted(a.uid) && slices.Contains(a.groups, gid) {
				members = append(members, a.name)
			}
		}
		if len(members) > 0 {
			return fmt.Sprintf("the group %d (%s)", gid, strings.Join(members, ", ")), nil
		}
	}
	return "", nil
}
