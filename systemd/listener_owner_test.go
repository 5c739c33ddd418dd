package systemd

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestOwners(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	owners, err := Owners("/proc", []uint16{port})
	if err != nil || len(owners) != 1 || owners[0].Address.Port() != port || !slices.Contains(owners[0].PIDs, os.Getpid()) {
		t.Errorf("%+v, %v", owners, err)
	}
	l.Close()
	if owners, err := Owners("/proc", []uint16{port}); err != nil || len(owners) != 0 {
		t.Errorf("nobody listens: %+v, %v", owners, err)
	}
	if owners, err := Owners("/proc", nil); err != nil || len(owners) != 0 {
		t.Errorf("no port: %+v, %v", owners, err)
	}
}

// The unit file that a reload would find is the one in the strongest folder; one that was linked in is the same file.
func TestFragment(t *testing.T) {
	strong, weak := t.TempDir(), t.TempDir()
	u := &Unit{ID: "llm@a.service", SearchPath: []string{strong, weak}}
	if got := u.Fragment(); got != "" {
		t.Errorf("no file: %q", got)
	}
	writeFile(t, weak+"/llm@.service", "[Service]\n")
	if got := u.Fragment(); got != weak+"/llm@.service" {
		t.Errorf("of the template: %q", got)
	}
	writeFile(t, weak+"/llm@a.service", "[Service]\n")
	if err := os.Symlink(weak+"/llm@a.service", strong+"/llm@a.service"); err != nil {
		t.Fatal(err)
	}
	got := u.Fragment()
	if got != strong+"/llm@a.service" || !sameFile(got, weak+"/llm@a.service") || sameFile(got, weak+"/llm@.service") {
		t.Errorf("its own, linked: %q", got)
	}
}
