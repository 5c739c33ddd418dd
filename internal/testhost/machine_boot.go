package testhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	machineTarget = "onebit-testmachine.target"
	machineWork   = "onebit-testmachine.service"
)

// readCourse reads what the machine is to do from the folder that this program was started in.
func readCourse() (c course, err error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "course"))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// machineBootMain is the first process of a machine: it makes the root, as a host's does, and becomes systemd.
func machineBootMain() error {
	c, err := readCourse()
	if err != nil {
		return err
	}
	const base = "/tmp" // hidden below a file system of memory until the root is entered
	for _, m := range [][2]string{{"proc", "/proc"}, {"tmpfs", base}} {
		if err := mount(m[0], m[1], m[0], 0, ""); err != nil {
			return err
		}
	}
	if err := loadOverlay(); err != nil {
		return err
	}
	p, root := plan{User: c.User, UID: c.UID, Dir: base}, base+"/root"
	for _, step := range []func(plan, string) error{
		mountRoot, mountKernel, makeDev, makeConsole, settleSystem, addUser, c.showFolders, c.addUnits, enterRoot, upLoopback,
	} {
		if err := step(p, root); err != nil {
			return err
		}
	}
	if err := unix.Sethostname([]byte("testmachine")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	return becomeSystemd(machineTarget)
}

// loadOverlay loads the module where the kernel has overlayfs as one.
func loadOverlay() error {
	kinds, err := os.ReadFile("/proc/filesystems")
	if err != nil || strings.Contains(string(kinds), "\toverlay\n") {
		return err
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	file, err := os.Open("/usr/lib/uml/modules/" + strings.TrimSpace(string(release)) + "/kernel/fs/overlayfs/overlay.ko")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.FinitModule(int(file.Fd()), "", 0); err != nil {
		return fmt.Errorf("load %s: %w", file.Name(), err)
	}
	return nil
}

// makeConsole makes the devices that only a machine with its own kernel may have.
func makeConsole(_ plan, root string) error {
	for name, minor := range map[string]uint32{"kmsg": 11, "console": 1} {
		major := map[string]uint32{"kmsg": 1, "console": 5}[name]
		path := filepath.Join(root, "dev", name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor))); err != nil {
			return &os.PathError{Op: "mknod", Path: path, Err: err}
		}
	}
	return nil
}

// showFolders shows the folders of the program and of the course at their own places: /tmp is empty otherwise.
func (c course) showFolders(_ plan, root string) error {
	for _, dir := range []string{c.Share, filepath.Dir(c.Program)} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
		if err := mount("none", root+dir, "hostfs", 0, dir); err != nil {
			return err
		}
	}
	return nil
}

// addUnits writes the target that the machine boots to and the service that is its work.
func (c course) addUnits(_ plan, root string) error {
	user := fmt.Sprintf("user@%d.service", c.UID)
	units := map[string]string{
		machineTarget: "[Unit]\nRequires=basic.target\nWants=systemd-logind.service systemd-user-sessions.service " + user + " " +
			machineWork + "\nAfter=basic.target\nAllowIsolate=yes\n",
		machineWork: "[Unit]\nAfter=basic.target systemd-logind.service " + user +
			"\n[Service]\nExecStart=" + c.file(machineWorkName) + "\nOOMPolicy=continue\n",
	}
	for name, text := range units {
		if err := os.WriteFile(filepath.Join(root, "etc/systemd/system", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(root, "var/log/journal"), 0o755) // so that the user has a journal
}

// machineWorkMain is the service that runs the program, keeps what it says, and puts the machine out.
func machineWorkMain() error {
	c, err := readCourse()
	if err != nil {
		return err
	}
	status := []byte("125")
	output, err := os.Create(c.file("output"))
	if err == nil {
		cmd := exec.Command(c.Program, c.Args...)
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, output, output
		if err = cmd.Run(); cmd.ProcessState != nil {
			status = []byte(strconv.Itoa(cmd.ProcessState.ExitCode()))
		}
		if err != nil {
			fmt.Fprintln(output, err)
		}
		err = output.Close()
	}
	err = errors.Join(err, os.WriteFile(c.file("status"), status, 0o600))
	unix.Sync() // the folder is another kernel's
	return errors.Join(err, unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}
