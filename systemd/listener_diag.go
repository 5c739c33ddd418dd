package systemd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The shapes of the kernel's linux/inet_diag.h and linux/sock_diag.h.
const (
	diagByFamily  = 20
	diagListen    = 10 // TCP_LISTEN
	diagHeader    = unix.SizeofNlMsghdr
	diagRequest   = 56 // struct inet_diag_req_v2
	diagAnswer    = 72 // struct inet_diag_msg
	diagAddressAt = 8  // of the source address in inet_diag_msg
	diagInodeAt   = 68
)

// askListening asks the kernel for the listening sockets of our own network namespace. The tables in /proc tell the
// same, but the kernel goes through every bucket of its table of connections to print them, which takes it many
// milliseconds on a machine with much memory.
func askListening() (map[uint64]netip.AddrPort, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(time.Second.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, fmt.Errorf("set up a netlink socket: %w", err)
	}
	table := map[uint64]netip.AddrPort{}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, diagHeader+diagRequest)
		binary.NativeEndian.PutUint32(request, uint32(len(request)))
		binary.NativeEndian.PutUint16(request[4:], diagByFamily)
		binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
		request[diagHeader], request[diagHeader+1] = family, unix.IPPROTO_TCP
		binary.NativeEndian.PutUint32(request[diagHeader+4:], 1<<diagListen)
		if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return nil, fmt.Errorf("ask for listening sockets: %w", err)
		}
		buffer := make([]byte, 64<<10)
		for done := false; !done; {
			n, _, err := unix.Recvfrom(fd, buffer, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err == nil {
				done, err = parseDiag(buffer[:n], table)
			}
			if err != nil {
				return nil, fmt.Errorf("ask for listening sockets: %w", err)
			}
		}
	}
	return table, nil
}

// errDiag is returned for an answer of the kernel that is none.
var errDiag = errors.New("not an answer about sockets")

// parseDiag adds the listening sockets of one datagram, by inode; done is true at the end of the dump.
func parseDiag(data []byte, table map[uint64]netip.AddrPort) (done bool, err error) {
	for len(data) >= diagHeader {
		size := int(binary.NativeEndian.Uint32(data))
		if size < diagHeader || size > len(data) {
			return false, errDiag
		}
		body := data[diagHeader:size]
		switch binary.NativeEndian.Uint16(data[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, errDiag
			}
			if code := int32(binary.NativeEndian.Uint32(body)); code < 0 {
				return false, unix.Errno(-code)
			}
			return false, errDiag
		case diagByFamily:
			if len(body) < diagAnswer {
				return false, errDiag
			}
			var address netip.Addr
			switch body[0] {
			case unix.AF_INET:
				address, _ = netip.AddrFromSlice(body[diagAddressAt : diagAddressAt+4])
			case unix.AF_INET6:
				address, _ = netip.AddrFromSlice(body[diagAddressAt : diagAddressAt+16])
			}
			if address.IsValid() && body[1] == diagListen {
				inode := uint64(binary.NativeEndian.Uint32(body[diagInodeAt:]))
				table[inode] = netip.AddrPortFrom(address.Unmap(), binary.BigEndian.Uint16(body[4:]))
			}
		}
		data = data[min(len(data), (size+3)&^3):]
	}
	if len(data) > 0 {
		return false, errDiag
	}
	return false, nil
}

// isOurs says whether a network namespace, as /proc names it, is the one that this process is in.
func isOurs(procRoot, space string) bool {
	ours, err := os.Readlink(filepath.Join(procRoot, "self", "ns", "net"))
	return err == nil && ours == space
}
