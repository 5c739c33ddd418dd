package systemd

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListenersOfThisProcess finds real sockets, and only those that listen.
func TestListenersOfThisProcess(t *testing.T) {
	listen := func(address string) netip.AddrPort {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		return listener.Addr().(*net.TCPAddr).AddrPort()
	}
	loopback, any4 := listen("127.0.0.1:0"), listen("0.0.0.0:0")
	client, err := net.Dial("tcp", loopback.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	got, err := Listeners("/proc", []int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []netip.AddrPort{loopback, any4} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is not in %v", want, got)
		}
	}
	if other := client.LocalAddr().(*net.TCPAddr).AddrPort(); slices.Contains(got, other) {
		t.Errorf("the connection %v counts as listening", other)
	}
	if others, err := Listeners("/proc", []int{os.Getppid()}); err == nil && slices.Contains(others, loopback) {
		t.Errorf("process %d does not own %v", os.Getppid(), loopback)
	}
}

const (
	tcpTable = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F9F 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 501 1 0000000000000000 100 0 0 10 0\n" +
		"   1: 0100007F:2329 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 502 1 0000000000000000 100 0 0 10 0\n" +
		"   2: 0100007F:1F9F 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 503 1 0000000000000000 100 0 0 10 0\n"
	tcp6Table = "  sl  local_address                         remote_address                        st tx_queue rx_queue\n" +
		"   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 504 1\n" +
		"   1: 00000000000000000000000001000000:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 505 1\n" +
		"   2: 0000000000000000FFFF00000100007F:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 506 1\n"
)

func TestListeners(t *testing.T) {
	root := t.TempDir()
	process := func(pid int, space string, links ...string) {
		dir := filepath.Join(root, strconv.Itoa(pid))
		writeFile(t, dir+"/net/tcp", tcpTable)
		writeFile(t, dir+"/net/tcp6", tcp6Table)
		for i, target := range append(links, space) {
			path := filepath.Join(dir, "fd", strconv.Itoa(i))
			if target == space {
				path = filepath.Join(dir, "ns", "net")
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	process(700, "net:[1]", "/dev/null", "socket:[501]", "socket:[503]", "pipe:[502]")
	process(801, "net:[1]", "socket:[504]", "socket:[505]", "socket:[506]", "socket:[501]")
	process(802, "net:[2]", "socket:[999]")
	tests := []struct {
		name string
		pids []int
		want []string
	}{
		{"one", []int{700}, []string{"127.0.0.1:8095"}},
		{"two that share one", []int{801, 700}, []string{"[::]:8080", "[::1]:8081", "127.0.0.1:8082", "127.0.0.1:8095"}},
		{"none of its own", []int{802}, nil},
		{"gone", []int{5}, nil},
		{"nobody", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			listeners, err := Listeners(root, test.pids)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, address := range listeners {
				got = append(got, address.String())
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestListenersDenied has a process whose descriptors may not be read. Root may read all.
func TestListenersDenied(t *testing.T) {
	if os.Getuid() == 0 {
		if !inside(t, false) {
			return
		}
	}
	if _, err := Listeners("/proc", []int{1}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the sockets of process 1: %v, want fs.ErrPermission", err)
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add(tcpTable)
	f.Add(tcp6Table)
	f.Add("0: 0100007F:1F9F 0:0 0A 0 0 0 0 0 x")
	f.Fuzz(func(t *testing.T, text string) {
		table := map[uint64]netip.AddrPort{}
		parseSockets([]byte(text), table)
		if len(table) > strings.Count(text, "0A") {
			t.Errorf("%d sockets", len(table))
		}
		for inode, address := range table {
			if !address.IsValid() || !strings.Contains(text, strconv.FormatUint(inode, 10)) {
				t.Errorf("socket %d at %v", inode, address)
			}
		}
	})
}
