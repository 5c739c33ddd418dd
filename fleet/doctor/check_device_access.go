package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

// deviceAccess looks whether services may use the device nodes that they need.
func deviceAccess() Check {
	return Check{
		Name:   "device-access",
		Reason: "A server whose device nodes are missing, or that may not open them, fails at its start or serves from the CPU without a word.",
		Remedy: "Make the account a member of the nodes' group, and start its manager anew: sudo usermod -aG render USER, then sudo systemctl restart user@UID.service",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			unseen := []error{err}
			accounts, groups, aerr := l.accounts()
			if aerr != nil && len(services) > 0 {
				return errors.Join(err, aerr)
			}
			for _, s := range services {
				for _, node := range l.nodes(s, add) {
					unseen = append(unseen, l.nodeOf(s, node, accounts, groups, add))
				}
			}
			return errors.Join(unseen...)
		},
	}
}

// nodes are the device nodes that a service needs and that are there: those that its package names and, where it is told
// to use HRX, those of that runtime.
func (l *look) nodes(s service, add adder) []string {
	var nodes []string
	if s.Package != nil {
		for _, r := range s.Package.Manifest.Requires {
			if r.Kind == packager.RequireDevice {
				nodes = append(nodes, r.Name)
			}
		}
	}
	if s.Loaded != nil && onHRX(s.Loaded.ExecStart) {
		nodes = append(nodes, "/dev/kfd")
		render, _ := filepath.Glob(l.path("dev/dri/renderD*"))
		for _, path := range render {
			nodes = append(nodes, "/dev/dri/"+filepath.Base(path))
		}
		if len(render) == 0 {
			nodes = append(nodes, "/dev/dri/renderD128")
		}
	}
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), func(node string) bool {
		_, err := os.Stat(l.path(node))
		missing := errors.Is(err, fs.ErrNotExist)
		if missing {
			add(node, "load the driver of the device, which is sudo modprobe amdgpu for an AMD GPU", "%s needs it, and it is not there", s.where)
		}
		return missing
	})
}

// onHRX tells whether a command says --device hrx.
func onHRX(commands []systemd.Command) bool {
	for _, c := range commands {
		for i, arg := range c.Argv {
			if arg == "--device=hrx" || arg == "hrx" && i > 0 && c.Argv[i-1] == "--device" {
				return true
			}
		}
	}
	return false
}

// nodeOf looks whether a service may read and write a node.
func (l *look) nodeOf(s service, node string, accounts []account, groups map[string]int, add adder) error {
	info, err := os.Stat(l.path(node))
	if err != nil {
		return fmt.Errorf("whether %s may use %s: %w", s.where, node, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if info.IsDir() || !ok {
		return nil
	}
	if _, _, err := l.owner(info); err != nil {
		return fmt.Errorf("whether %s may use %s: %w", s.where, node, err)
	}
	who, err := l.runsAs(s, accounts, groups)
	if err != nil {
		return fmt.Errorf("whether %s may use %s: %w", s.where, node, err)
	}
	now := who.groups
	if s.Live != nil && s.Live.Main != nil {
		if now, err = l.groupsOf(s.Live.Main.PID); err != nil {
			return fmt.Errorf("whether %s may use %s: %w", s.where, node, err)
		}
	}
	if may(info.Mode(), stat, who.uid, now) {
		return nil
	}
	if _, err := unix.Getxattr(l.path(node), "system.posix_acl_access", nil); err == nil {
		return fmt.Errorf("whether %s may use %s: its access control list has more to say (getfacl %s)", s.where, node, node)
	}
	again := "sudo systemctl restart " + s.Unit
	if s.Scope == systemd.ScopeUser {
		again = fmt.Sprintf("sudo systemctl restart user@%d.service", who.uid) // only a manager that starts anew has new groups
	}
	group := cmp.Or(nameOfGroup(groups, int(stat.Gid)), strconv.Itoa(int(stat.Gid)))
	switch {
	case may(info.Mode(), stat, who.uid, who.groups):
		add(node, again, "%s was started before %s came into the group %s, without which it may not use the node", s.where, who.name, group)
	case info.Mode()&0o060 == 0o060 && stat.Gid != 0:
		add(node, fmt.Sprintf("sudo usermod -aG %s %s && %s", group, who.name, again), "%s runs as %s, who may not read and write it (group %s, mode %v)", s.where, who.name, group, info.Mode())
	default:
		to := cmp.Or(nameOfGroup(groups, who.gid), strconv.Itoa(who.gid))
		for _, usual := range []string{"video", "render"} {
			if _, ok := groups[usual]; ok {
				to = usual
			}
		}
		command := fmt.Sprintf("sudo chgrp %[1]s %[2]s && sudo chmod 660 %[2]s", to, node)
		if gid, ok := groups[to]; ok && !slices.Contains(who.groups, gid) {
			command += fmt.Sprintf(" && sudo usermod -aG %s %s && %s", to, who.name, again)
		}
		add(node, "have a rule of udev's do it at every boot, and now: "+command, "%s runs as %s, who may not read and write it (group %s, mode %v)", s.where, who.name, group, info.Mode())
	}
	return nil
}

func nameOfGroup(groups map[string]int, gid int) string {
	for name, one := range groups {
		if one == gid {
			return name
		}
	}
	return ""
}

// runsAs is the account that a service runs as, with the groups that its next start has.
func (l *look) runsAs(s service, accounts []account, groups map[string]int) (account, error) {
	name := cmp.Or(s.host.Owner, l.User)
	if s.Scope == systemd.ScopeSystem {
		name = "root"
		if s.Settings != nil {
			name = cmp.Or(s.Settings.Last("Service", "User").Line.Value, name)
		}
	}
	who, err := find(accounts, name)
	if err != nil || s.Scope == systemd.ScopeUser || s.Settings == nil {
		return who, err
	}
	for _, value := range s.Settings.Values("Service", "SupplementaryGroups") {
		for word := range strings.FieldsSeq(value.Value) {
			if gid, ok := groups[word]; ok {
				who.groups = append(slices.Clone(who.groups), gid)
			}
		}
	}
	return who, nil
}

// groupsOf are the groups of a running process.
func (l *look) groupsOf(pid int) ([]int, error) {
	status, err := procfs.Read(l.path("proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return nil, err
	}
	var gids []int
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		if key != "Gid" && key != "Groups" {
			continue
		}
		for word := range strings.FieldsSeq(value) {
			if gid, err := strconv.Atoi(word); err == nil {
				gids = append(gids, gid)
			}
		}
	}
	return gids, nil
}

// may tells whether an account of these groups may read and write a file, by its mode alone.
func may(mode fs.FileMode, stat *syscall.Stat_t, uid int, gids []int) bool {
	switch {
	case uid == 0:
		return true
	case int(stat.Uid) == uid:
		return mode&0o600 == 0o600
	case slices.Contains(gids, int(stat.Gid)):
		return mode&0o060 == 0o060
	}
	return mode&0o006 == 0o006
}
