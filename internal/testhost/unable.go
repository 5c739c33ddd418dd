package testhost

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Unable tells why no host can run on this machine, or gives nil. The packages that Debian and Ubuntu need for one
// are systemd, dbus, dbus-user-session and libpam-systemd.
func Unable() error {
	for _, check := range []func() error{haveRoot, haveSystemd, haveBus, haveOverlay} {
		if err := check(); err != nil {
			return fmt.Errorf("no test host: %w", err)
		}
	}
	if _, err := findCgroups(); err != nil {
		return fmt.Errorf("no test host: %w", err)
	}
	return nil
}

func haveRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("this needs root")
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	if fields := strings.Fields(string(users)); len(fields) != 3 || fields[0] != "0" || fields[1] != "0" {
		return errors.New("this root is one of a user namespace")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, effective, _ := strings.Cut(string(status), "CapEff:")
	effective, _, _ = strings.Cut(strings.TrimSpace(effective), "\n")
	powers, err := strconv.ParseUint(effective, 16, 64)
	if err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for _, need := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_MKNOD, unix.CAP_NET_ADMIN} {
		if powers&(1<<need) == 0 {
			return fmt.Errorf("this root lacks capability %d: it may not make namespaces, mounts and devices", need)
		}
	}
	return nil
}

func haveSystemd() error {
	var err error
	for _, systemd := range systemdPaths() {
		if _, err = os.Stat(systemd); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no systemd here: %w", err)
}

// haveBus sees that system and user manager will have a bus: not every machine with systemd has both.
func haveBus() error {
	_, daemon := exec.LookPath("dbus-daemon")
	_, broker := exec.LookPath("dbus-broker-launch")
	if daemon != nil && broker != nil {
		return fmt.Errorf("no D-Bus here: %w", daemon)
	}
	for _, scope := range []string{"system", "user"} {
		_, err := os.Stat("/usr/lib/systemd/" + scope + "/dbus.socket")
		if err != nil && scope == "system" {
			_, err = os.Stat("/lib/systemd/system/dbus.socket")
		}
		if err != nil {
			return fmt.Errorf("no %s bus here: %w", scope, err)
		}
	}
	return nil
}

func haveOverlay() error {
	// Where it is a module, this loads it.
	_ = exec.Command("modprobe", "-q", "overlay").Run()
	kinds, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	if !strings.Contains(string(kinds), "\toverlay\n") {
		return errors.New("the kernel has no overlayfs")
	}
	return nil
}
