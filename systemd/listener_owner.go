package systemd

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Owner is one listening socket and the processes that hold it. PIDs is empty where they belong to another user,
// whose descriptors may not be read.
type Owner struct {
	Address netip.AddrPort
	PIDs    []int
}

// Owners lists who listens on one of the TCP ports, in the network namespace of this process, sorted by address.
func Owners(procRoot string, ports []uint16) ([]Owner, error) {
	table, err := askListening()
	if err != nil { // a kernel without the module
		if table, err = listening(filepath.Join(procRoot, "self", "net")); err != nil {
			return nil, fmt.Errorf("read the listening sockets: %w", err)
		}
	}
	found := map[uint64]*Owner{}
	for inode, address := range table {
		if slices.Contains(ports, address.Port()) {
			found[inode] = &Owner{Address: address}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	entries, err := os.ReadDir(procRoot)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		inodes, err := socketInodes(filepath.Join(procRoot, e.Name(), "fd"))
		if err != nil {
			continue // another user's
		}
		for _, inode := range inodes {
			if o := found[inode]; o != nil && !slices.Contains(o.PIDs, pid) {
				o.PIDs = append(o.PIDs, pid)
			}
		}
	}
	owners := make([]Owner, 0, len(found))
	for _, o := range found {
		slices.Sort(o.PIDs)
		owners = append(owners, *o)
	}
	slices.SortFunc(owners, func(a, b Owner) int { return a.Address.Compare(b.Address) })
	return owners, nil
}
