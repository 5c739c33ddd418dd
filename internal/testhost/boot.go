package testhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageSize is the size of the (sparse) ext4 image where the machine has no disk file system to offer.
const imageSize = 8 << 30

// systemdPaths are the places of systemd's PID 1.
func systemdPaths() []string { return []string{"/usr/lib/systemd/systemd", "/lib/systemd/systemd"} }

// bootMain is PID 1 of the new namespaces: it makes the root of the host and becomes systemd.
func bootMain() error {
	var p plan
	if err := parameters(&p); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.Cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("join cgroup: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make cgroup namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := filepath.Join(p.Dir, "root")
	for _, step := range []func(plan, string) error{
		mountRoot, showOthers, mountKernel, makeDev, settleSystem, addUser, enterRoot, limitPower, upLoopback,
	} {
		if err := step(p, root); err != nil {
			return err
		}
	}
	if err := unix.Sethostname([]byte("testhost-" + p.ID)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	return becomeSystemd("multi-user.target")
}

// becomeSystemd executes systemd in this process, the first one.
func becomeSystemd(target string) error {
	err := error(fs.ErrNotExist)
	for _, systemd := range systemdPaths() {
		if _, err = os.Stat(systemd); err == nil {
			// "container" keeps it from settings of the kernel that concern the machine.
			err = unix.Exec(systemd, []string{systemd, "--system", "--unit=" + target},
				[]string{"PATH=" + systemPath, "container=onebit-testhost"})
		}
	}
	return fmt.Errorf("execute systemd: %w", err)
}

// mount mounts and says on failure what it wanted.
func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, target, err)
	}
	return nil
}

// mountRoot mounts the overlay over the machine's root, and the disk that it and the home lie on.
func mountRoot(p plan, root string) error {
	disk := filepath.Join(p.Dir, "disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return err
	}
	if p.Image {
		if err := mountImage(filepath.Join(p.Dir, "image"), disk); err != nil {
			return err
		}
	}
	for _, dir := range []string{root, filepath.Join(disk, "upper"), filepath.Join(disk, "work"), filepath.Join(disk, "home")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return mount("overlay", root, "overlay", 0,
		fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", disk, disk))
}

func mountImage(image, on string) error {
	file, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(imageSize), file.Close()); err != nil {
		return err
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, on}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("make a disk image: %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// mountKernel mounts the kernel's file systems. What reaches beyond the namespaces is read-only.
func mountKernel(_ plan, root string) error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		target, kind, data string
		flags              uintptr
	}{
		{"/proc", "proc", "", quiet},
		{"/sys", "sysfs", "", quiet | unix.MS_RDONLY},
		{"/sys/fs/cgroup", "cgroup2", "", quiet},
		{"/run", "tmpfs", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"/tmp", "tmpfs", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := os.MkdirAll(root+m.target, 0o755); err != nil && m.target != "/sys/fs/cgroup" {
			return err
		}
		if err := mount(m.kind, root+m.target, m.kind, m.flags, m.data); err != nil {
			return err
		}
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger"} {
		if err := bindReadOnly(root+path, root+path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func bindReadOnly(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", to, err)
	}
	return nil
}

// makeDev makes a /dev with nodes of its own: whoever shares the machine's devtmpfs can remove the machine's nodes.
func makeDev(_ plan, root string) error {
	dev := filepath.Join(root, "dev")
	if err := mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	unix.Umask(0)
	defer unix.Umask(0o022)
	for _, node := range []struct {
		name         string
		major, minor uint32
	}{
		{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
	} {
		path := filepath.Join(dev, node.name)
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(node.major, node.minor)))
		if err != nil {
			return &os.PathError{Op: "mknod", Path: path, Err: err}
		}
	}
	for _, name := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return errors.Join(
		mount("devpts", filepath.Join(dev, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
		mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
		mount("mqueue", filepath.Join(dev, "mqueue"), "mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
	)
}

// showOthers shows the folders that lie on other disks of the machine, which the overlay of / does not reach: each
// by an overlay of its own, or read-only where its file system does not allow one.
func showOthers(p plan, root string) error {
	for i, dir := range p.Others {
		upper, work := fmt.Sprintf("%s/disk/upper%d", p.Dir, i), fmt.Sprintf("%s/disk/work%d", p.Dir, i)
		for _, folder := range []string{root + dir, upper, work} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)
		if err := mount("overlay", root+dir, "overlay", 0, options); err != nil {
			if err := bindReadOnly(dir, root+dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// enterRoot makes root the root folder and lets go of the machine's.
func enterRoot(_ plan, root string) error {
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("enter root: %w", err)
	}
	// With both folders the same the old root is stacked below the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the machine's root: %w", err)
	}
	return unix.Chdir("/")
}

// limitPower gives up for good what no namespace contains.
func limitPower(plan, string) error {
	for _, power := range []uintptr{unix.CAP_SYS_TIME, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", power, err)
		}
	}
	return nil
}

func upLoopback(plan, string) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	return nil
}
