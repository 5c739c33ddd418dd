package systemd

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestAskListening compares what netlink tells with the tables in /proc.
func TestAskListening(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("no socket on %s: %v", address, err)
			continue
		}
		defer listener.Close()
	}
	asked, err := askListening()
	if err != nil {
		t.Fatal(err)
	}
	read, err := listening("/proc/self/net")
	if err != nil {
		t.Fatal(err)
	}
	inodes, err := socketInodes("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, inode := range inodes { // others' sockets come and go
		got, ok := asked[inode]
		want, wantOK := read[inode]
		if got != want || ok != wantOK {
			t.Errorf("socket %d: netlink says %v %v, /proc says %v %v", inode, got, ok, want, wantOK)
		}
		if ok {
			compared++
		}
	}
	if compared == 0 {
		t.Error("no listening socket of this process was seen")
	}
	if isOurs("/proc", "net:[1]") || isOurs(t.TempDir(), "") {
		t.Error("a foreign namespace counts as ours")
	}
	if space, err := os.Readlink("/proc/self/ns/net"); err != nil || !isOurs("/proc", space) {
		t.Errorf("our own namespace %s is foreign: %v", space, err)
	}
}

// diagMessage makes one netlink message.
func diagMessage(kind uint16, body []byte) []byte {
	out := make([]byte, diagHeader, diagHeader+len(body)+3)
	binary.NativeEndian.PutUint32(out, uint32(diagHeader+len(body)))
	binary.NativeEndian.PutUint16(out[4:], kind)
	out = append(out, body...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

func FuzzParseDiag(f *testing.F) {
	body := make([]byte, diagAnswer)
	body[0], body[1] = 2, diagListen
	binary.BigEndian.PutUint16(body[4:], 8095)
	copy(body[diagAddressAt:], []byte{127, 0, 0, 1})
	binary.NativeEndian.PutUint32(body[diagInodeAt:], 77)
	one := diagMessage(diagByFamily, body)
	table := map[uint64]netip.AddrPort{}
	done, err := parseDiag(append(append([]byte(nil), one...), diagMessage(3, []byte{0, 0, 0, 0})...), table)
	want := map[uint64]netip.AddrPort{77: netip.MustParseAddrPort("127.0.0.1:8095")}
	if diff := cmp.Diff(want, table, cmpopts.EquateComparable(netip.AddrPort{})); !done || err != nil || diff != "" {
		f.Fatalf("done %v, error %v, %s", done, err, diff)
	}
	for _, seed := range [][]byte{one, one[:20], diagMessage(2, []byte{255, 255, 255, 255}), diagMessage(2, nil), {1, 2, 3}, nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table := map[uint64]netip.AddrPort{}
		if _, err := parseDiag(data, table); err == nil && len(table) > len(data)/diagAnswer {
			t.Fatalf("%d sockets in %d bytes", len(table), len(data))
		}
	})
}
