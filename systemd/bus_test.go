package systemd

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEndpoints holds the ways in which a program may be started: by cron, over ssh, after su and
// sudo. In the wanted list / stands for the root of the test.
func TestEndpoints(t *testing.T) {
	uid := os.Getuid()
	ownDir := "/run/user/" + strconv.Itoa(uid)
	own := []string{ownDir + "/systemd/private", ownDir + "/bus bus"}
	foreign := "/" // of root; where root tests, the folder is given away
	if uid == 0 {
		foreign = "/run/user/4242"
	}
	tests := []struct {
		name       string
		runtimeDir string
		busAddress string
		dirs       []string
		want       []string
		notes      int
	}{
		{"cron: nothing is set", "", "", []string{ownDir}, own, 0},
		{"ssh: the folder is set", ownDir, "", []string{ownDir}, own, 0},
		{"login: both are set", ownDir, "unix:path=" + "ROOT" + ownDir + "/bus", []string{ownDir}, own, 0},
		{"su: both are another user's", foreign, "unix:path=FOREIGN/bus", []string{ownDir}, own, 2},
		{"sudo without linger: no folder", "", "", nil, nil, 1},
		{"the folder that is set is not there", "/run/user/1", "", []string{ownDir}, own, 1},
		{"a folder elsewhere comes first", "/elsewhere", "", []string{"/elsewhere", ownDir},
			append([]string{"/elsewhere/systemd/private", "/elsewhere/bus bus"}, own...), 0},
		{"a bus elsewhere comes last", "", "unix:path=ROOT/elsewhere,guid=00", []string{"/elsewhere", ownDir},
			append(append([]string{}, own...), "/elsewhere bus"), 0},
		{"a bus that is no file", "", "unix:abstract=/tmp/x", []string{ownDir}, own, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range append(test.dirs, "/run/user") {
				if err := os.MkdirAll(root+dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			opts := ConnectOptions{UID: uid, Root: root}
			if test.runtimeDir != "" {
				opts.RuntimeDir = root + test.runtimeDir
			}
			opts.BusAddress = strings.ReplaceAll(test.busAddress, "ROOT", root)
			if strings.HasPrefix(test.name, "su:") {
				opts.RuntimeDir = foreign
				if uid == 0 {
					opts.RuntimeDir = root + foreign
					writeFile(t, opts.RuntimeDir+"/bus", "")
					for _, path := range []string{opts.RuntimeDir, opts.RuntimeDir + "/bus"} {
						if err := os.Chown(path, 4242, 4242); err != nil {
							t.Fatal(err)
						}
					}
				}
				opts.BusAddress = strings.ReplaceAll(test.busAddress, "FOREIGN", opts.RuntimeDir)
			}
			var got []string
			endpoints, notes := opts.endpoints()
			for _, e := range endpoints {
				text := strings.TrimPrefix(e.path, root)
				if e.bus {
					text += " bus"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("sockets to try (-want +got):\n%s", diff)
			}
			if len(notes) != test.notes {
				t.Errorf("notes: %q, want %d", notes, test.notes)
			}
			_, err := Connect(t.Context(), opts)
			if !errors.Is(err, ErrNoBus) || !strings.Contains(err.Error(), "enable-linger "+strconv.Itoa(uid)) {
				t.Errorf("Connect: %v, want ErrNoBus with what to do", err)
			}
		})
	}
}

// TestConnectNotToTheSystem makes sure that without a user manager the system's is left alone,
// and that a socket without a listener counts for none.
func TestConnectNotToTheSystem(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "/run/user", strconv.Itoa(os.Getuid()))
	stale := listenAt(t, filepath.Join(dir, "bus"))
	stale.SetUnlinkOnClose(false)
	stale.Close()
	asked := make(chan string, 2)
	for _, path := range []string{systemPrivate, systemBus} {
		listener := listenAt(t, root+path)
		go func() {
			if conn, err := listener.Accept(); err == nil {
				conn.Close()
				asked <- path
			}
		}()
	}
	_, err := Connect(t.Context(), ConnectOptions{Scope: ScopeUser, UID: os.Getuid(), Root: root})
	if !errors.Is(err, ErrNoBus) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Connect: %v, want ErrNoBus because of a refused connection", err)
	}
	select {
	case path := <-asked:
		t.Errorf("it went to %s", path)
	default:
	}
	if _, err = Connect(t.Context(), ConnectOptions{Scope: ScopeSystem, Root: root}); !errors.Is(err, ErrNoBus) {
		t.Errorf("Connect to the system: %v, want ErrNoBus", err)
	}
	if <-asked == "" {
		t.Error("the system scope asks nobody")
	}
	want := []endpoint{{path: "/r/run/dbus/system_bus_socket", bus: true}}
	if os.Getuid() == 0 {
		want = append([]endpoint{{path: "/r/run/systemd/private"}}, want...)
	}
	if got, _ := (ConnectOptions{Scope: ScopeSystem, Root: "/r"}).endpoints(); !slices.Equal(got, want) {
		t.Errorf("system scope: %v, want %v", got, want)
	}
}

// TestConnectToOneThatHangs has a manager that accepts and says nothing: the context must end
// the wait.
func TestConnectToOneThatHangs(t *testing.T) {
	root := t.TempDir()
	listener := listenAt(t, filepath.Join(root, "/run/user", strconv.Itoa(os.Getuid()), "systemd/private"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			conn.Read(make([]byte, 1)) // the client has begun
			cancel()
			t.Cleanup(func() { conn.Close() })
		}
	}()
	_, err := Connect(ctx, ConnectOptions{UID: os.Getuid(), Root: root})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Connect: %v, want context.Canceled", err)
	}
}

// TestConnectToOneThatDiesMidway has a manager that authenticates and dies in the middle of its
// first message: an error, and no panic of the D-Bus library.
func TestConnectToOneThatDiesMidway(t *testing.T) {
	// A reply to serial 1 with a body of one number, cut at every place: 15 bytes of header fields,
	// one of padding.
	message := []byte("l\x02\x01\x01\x04\x00\x00\x00\x01\x00\x00\x00\x0f\x00\x00\x00" +
		"\x05\x01u\x00\x01\x00\x00\x00" + "\x08\x01g\x00\x01u\x00" + "\x00" + "\x07\x00\x00\x00")
	for cut := range len(message) + 1 {
		root := t.TempDir()
		listener := listenAt(t, filepath.Join(root, "/run/user", strconv.Itoa(os.Getuid()), "systemd/private"))
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				authenticate(conn)
				conn.Write(message[:cut])
				conn.Close()
			}
		}()
		if _, err := Connect(t.Context(), ConnectOptions{UID: os.Getuid(), Root: root}); !errors.Is(err, ErrNoBus) {
			t.Errorf("cut after %d bytes: %v, want ErrNoBus", cut, err)
		}
	}
}

// authenticate is the server's half of a handshake.
func authenticate(conn net.Conn) {
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil, strings.HasPrefix(line, "BEGIN"):
			return
		case strings.Contains(line, "AUTH EXTERNAL"):
			conn.Write([]byte("OK 0123456789abcdef0123456789abcdef\r\n"))
		case strings.HasPrefix(line, "NEGOTIATE"):
			conn.Write([]byte("AGREE_UNIX_FD\r\n"))
		default:
			conn.Write([]byte("REJECTED EXTERNAL\r\n"))
		}
	}
}

func listenAt(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func TestSocketPath(t *testing.T) {
	tests := []struct {
		address, want string
		ok            bool
	}{
		{"unix:path=/run/user/1000/bus", "/run/user/1000/bus", true},
		{"unix:guid=12,path=/a%20b", "/a b", true},
		{"tcp:host=localhost;unix:path=/x", "/x", true},
		{"unix:abstract=/tmp/x", "", false},
		{"unix:path=%zz", "", false},
		{"", "", false},
	}
	for _, test := range tests {
		if got, ok := socketPath(test.address); got != test.want || ok != test.ok {
			t.Errorf("socketPath(%q) = %q, %v, want %q, %v", test.address, got, ok, test.want, test.ok)
		}
	}
}
