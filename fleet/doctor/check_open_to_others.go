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
		Reason: "Whoever can write the policy, a unit or a package decides what runs as the service's account, whatever the policy says.",
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
			paths := []string{l.Policy.File, h.UnitDir, h.Store.Dir, h.StateDir}
			services, err := l.services()
			for _, s := range services {
				if s.host == h && s.Loaded != nil {
					paths = append(append(paths, s.Loaded.FragmentPath), s.Loaded.DropInPaths...)
				}
			}
			unseen, seen := []error{err}, map[string]bool{}
			for _, path := range paths {
				if path == "" {
					continue
				}
				unseen = append(unseen, l.openPath(nearest(path), accounts, groups, seen, add))
			}
			return errors.Join(unseen...)
		},
	}
}

// openPath looks at a path and every folder above it. What was looked at is in seen.
func (l *look) openPath(path string, accounts []account, groups map[string]int, seen map[string]bool, add adder) error {
	for ; !seen[path]; path = filepath.Dir(path) {
		seen[path] = true
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("who may write %s: %w", path, err)
		}
		who := l.othersIn(info, accounts)
		stat, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case who == "" && ok && info.Mode()&0o020 != 0 && nameOfGroup(groups, int(stat.Gid)) == "":
			return fmt.Errorf("who may write %s: the group %d is not in /etc/group", path, stat.Gid)
		case who == "":
		case strings.HasPrefix(who, "the account"):
			add(path, fmt.Sprintf("sudo chown %s %s", l.User, path), "%s may write it: it is the owner", who)
		default:
			sudo := ""
			if int(info.Sys().(*syscall.Stat_t).Uid) != l.UID {
				sudo = "sudo "
			}
			add(path, sudo+"chmod go-w "+path, "%s may write it: its mode is %v", who, info.Mode())
		}
	}
	return nil
}

// othersIn says who else than this account and root may write a file or folder, "" for nobody. A folder with the sticky
// bit, such as /tmp, lets nobody replace the files of others.
func (l *look) othersIn(info fs.FileInfo, accounts []account) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() && !info.Mode().IsRegular() { // such as /dev/null, which masks a unit
		return ""
	}
	switch owner := int(stat.Uid); {
	case owner != 0 && owner != l.UID:
		if a, err := find(accounts, fmt.Sprint(owner)); err == nil {
			return "the account " + a.name
		}
		return fmt.Sprintf("the account of uid %d", owner)
	case info.IsDir() && info.Mode()&fs.ModeSticky != 0:
		return ""
	case info.Mode()&0o002 != 0:
		return "every account"
	case info.Mode()&0o020 != 0:
		var members []string
		for _, a := range accounts {
			if a.uid != 0 && a.uid != l.UID && slices.Contains(a.groups, int(stat.Gid)) {
				members = append(members, a.name)
			}
		}
		if len(members) > 0 {
			return fmt.Sprintf("the group %d (%s)", stat.Gid, strings.Join(members, ", "))
		}
	}
	return ""
}
