// Package testhost boots a real systemd for tests: the machine's own, as PID 1 of namespaces of its own, over a
// throw-away overlay of the machine's root. Units, drop-ins, D-Bus, logind, the journal and user managers inside
// are the real ones; nothing of the machine changes.
//
// A host has a lingering user `ai` with a running user manager. Its home and the overlay's upper folder lie on a
// disk file system, since a sync costs nothing on tmpfs: [Host.Disk] says which. Its /dev has nodes of its own, its
// network is a lone loopback, /proc/sys and /sys are read-only, and it may not set the clock or load modules.
//
// # Processes
//
//	owner (a test binary)
//	└─ keeper          reads a pipe from the owner; makes and removes the host's folder and cgroup
//	   └─ systemd      PID 1 of the host; began as `boot`, which makes the mounts and then executes systemd
//	owner ── enter     joins the namespaces, passes signals on and the exit status back
//	         └─ command, inside
//
// keeper, boot, enter and the first moment of a command are the owner's own program, started again under a name
// that this package's init function knows (see reexec.go). So a test binary needs nothing but itself: no helper to
// build, no Go tool at run time. The init function does nothing for any other name.
//
// # How it ends
//
// By SIGKILL of its PID 1 (on SIGTERM systemd would execute itself again), which ends all of the host's processes and
// with them its mounts and its network. The keeper does that when it is told to or when the owner dies, however it
// dies, as that closes the pipe. If the keeper is killed the kernel kills PID 1 (parent-death signal), and the next
// Start sweeps what is left: a host's folder whose lock no keeper holds.
//
// # Files
//
//	<base>/lock          held while a folder is made or swept
//	<base>/<id>/lock     held by the keeper while it lives
//	<base>/<id>/state    PID 1 and the cgroup, for the sweeper
//	<base>/<id>/log      what keeper, boot and systemd said
//	<base>/<id>/disk/    upper, work, home; an ext4 image is mounted here where base is no disk itself
//	<base>/<id>/root     where the host's root is put together
//
// base is /var/tmp/onebit-testhost, or the like in the first folder of a few that lies on a disk.
//
// # Machines
//
// A host shares the machine's kernel, and with it the cgroup controllers that others may have taken, so no MemoryMax=
// is enforced in it. [InMachine] boots a kernel of its own for a test that needs that; see machine.go.
package testhost
