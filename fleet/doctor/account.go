package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// account is one of /etc/passwd, with all groups that it is a member of.
type account struct {
	name     string
	uid, gid int
	shell    string
	groups   []int // gid and those of /etc/group
}

// accounts are what /etc/passwd and /etc/group say. Accounts of a directory service are not among them.
func (l *look) accounts() ([]account, map[string]int, error) {
	passwd, err := procfs.Read(l.path("etc/passwd"))
	group, gerr := procfs.Read(l.path("etc/group"))
	if err := errors.Join(err, gerr); err != nil {
		return nil, nil, fmt.Errorf("look up accounts: %w", err)
	}
	list, groups := parseAccounts(string(passwd), string(group))
	return list, groups, nil
}

// parseAccounts reads passwd(5) and group(5). A line that is none is passed over.
func parseAccounts(passwd, group string) (list []account, groups map[string]int) {
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 7 {
			continue
		}
		uid, err := strconv.Atoi(f[2])
		gid, gerr := strconv.Atoi(f[3])
		if err == nil && gerr == nil {
			list = append(list, account{name: f[0], uid: uid, gid: gid, shell: f[6], groups: []int{gid}})
		}
	}
	groups = map[string]int{}
	for line := range strings.Lines(group) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 {
			continue
		}
		gid, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		groups[f[0]] = gid
		for i := range list {
			if slices.Contains(strings.Split(f[3], ","), list[i].name) && !slices.Contains(list[i].groups, gid) {
				list[i].groups = append(list[i].groups, gid)
			}
		}
	}
	return list, groups
}

// find is the account of a name or a number.
func find(list []account, name string) (account, error) {
	for _, a := range list {
		if a.name == name || strconv.Itoa(a.uid) == name {
			return a, nil
		}
	}
	return account{}, fmt.Errorf("look up the account %s: %w", name, fs.ErrNotExist)
}
