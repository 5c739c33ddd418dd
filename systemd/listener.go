package systemd

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Listeners lists the TCP addresses on which one of the processes listens, sorted: the sockets
// in state LISTEN of /proc/PID/net/tcp and tcp6, or as netlink tells them, that a file descriptor of a process
// refers to.
// An address of all interfaces is 0.0.0.0 or [::], the second usually for IPv4 too. A process
// that has ended is passed over; one whose descriptors may not be read is an error that wraps
// fs.ErrPermission.
func Listeners(procRoot string, pids []int) ([]netip.AddrPort, error) {
	tables := map[string]map[uint64]netip.AddrPort{} // by network namespace
	var found []netip.AddrPort
	for _, pid := range pids {
		dir := filepath.Join(procRoot, strconv.Itoa(pid))
		inodes, err := socketInodes(filepath.Join(dir, "fd"))
		if err != nil {
			return nil, fmt.Errorf("read the sockets of process %d: %w", pid, err)
		}
		if len(inodes) == 0 {
			continue
		}
		space, err := os.Readlink(filepath.Join(dir, "ns", "net"))
		if err != nil {
			space = dir
		}
		table, ok := tables[space]
		if !ok {
			err := errDiag
			if isOurs(procRoot, space) {
				table, err = askListening()
			}
			if err != nil { // another namespace, or a kernel without the module
				table, err = listening(filepath.Join(dir, "net"))
			}
			if err != nil {
				return nil, fmt.Errorf("read the listening sockets of process %d: %w", pid, err)
			}
			tables[space] = table
		}
		for _, inode := range inodes {
			if address, ok := table[inode]; ok {
				found = append(found, address)
			}
		}
	}
	slices.SortFunc(found, func(a, b netip.AddrPort) int {
		return cmp.Or(cmp.Compare(a.Port(), b.Port()), a.Addr().Compare(b.Addr()))
	})
	return slices.Compact(found), nil
}

// gone says whether an error of /proc only means that the process has ended.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// socketInodes lists the sockets that the descriptors in a folder refer to.
func socketInodes(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if gone(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if gone(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		text, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			continue
		}
		if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes, nil
}

// listening reads both socket tables of a network namespace.
func listening(dir string) (map[uint64]netip.AddrPort, error) {
	table := map[uint64]netip.AddrPort{}
	for _, name := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if gone(err) || errors.Is(err, syscall.EINVAL) {
			continue // the process ended, or this kernel has no IPv6
		} else if err != nil {
			return nil, err
		}
		parseSockets(data, table)
	}
	return table, nil
}

// parseSockets adds the listening sockets of a table, by inode. A line that it does not
// understand is not a listening socket.
func parseSockets(data []byte, table map[uint64]netip.AddrPort) {
	const stateListen = "0A"
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) < 10 || fields[3] != stateListen {
			continue
		}
		address, ok := parseSocketAddress(fields[1])
		inode, err := strconv.ParseUint(fields[9], 10, 64)
		if ok && err == nil {
			table[inode] = address
		}
	}
}

// parseSocketAddress reads ADDRESS:PORT in hexadecimal. The kernel prints the address as words
// of 32 bits in the byte order of the machine.
func parseSocketAddress(text string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(text, ":")
	if !ok {
		return netip.AddrPort{}, false
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	address, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), ok
}
