package doctor_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// hostPlants are the problems of the host itself.
func hostPlants() []plant {
	return []plant{
		{name: "no linger", cure: true, check: "linger", where: "account ai", what: unit, plant: func(g *garden, _ *question) {
			g.remove("/var/lib/systemd/linger/" + g.host.User)
		}},
		{name: "no user manager", cure: true, check: "bus", where: "user manager of ai", what: "no user manager", plant: func(g *garden, _ *question) {
			manager := fmt.Sprintf("user@%d.service", g.host.UID)
			g.restarts = true
			g.later(func() { g.asRoot("systemctl", "start", manager) })
			g.asRoot("systemctl", "stop", manager)
		}},
		{name: "the runtime folder of another account", check: "bus", where: "XDG_RUNTIME_DIR", what: "uid 0", plant: func(_ *garden, q *question) {
			q.RuntimeDir = "/run/user"
		}},
		{name: "a journal in memory", cure: true, check: "journal", where: "50-small.conf:2", what: "memory", plant: func(g *garden, _ *question) {
			g.write("/etc/systemd/journald.conf.d/50-small.conf", "[Journal]\nStorage=volatile\n")
			g.keep("/etc/systemd/journald.conf.d/zz-persistent.conf")
		}},
		{name: "no journal", cure: true, check: "journal", where: "journald.conf:", what: "keeps nothing", root: true, plant: func(g *garden, _ *question) {
			g.add("/etc/systemd/journald.conf", "[Journal]\nStorage=none\n")
			g.keep("/etc/systemd/journald.conf.d/zz-persistent.conf")
		}},
		{name: "a journal that its user may not read", check: "journal", where: "user-", what: "its services write into it", plant: func(g *garden, _ *question) {
			pattern := fmt.Sprintf("/var/log/journal/*/user-%d.journal", g.host.UID)
			var files []string
			g.eventually("the user has a journal", func() bool {
				files, _ = filepath.Glob(g.host.Outside(pattern))
				return len(files) > 0
			})
			for _, path := range files {
				g.chmod("/"+strings.TrimPrefix(path, g.host.Outside("/")), 0o600)
			}
		}},
		{name: "packages that may not run", cure: true, check: "store-place", where: ".local/share", what: "noexec", plant: func(g *garden, _ *question) {
			g.remount(g.data, "noexec")
		}},
		{name: "packages that cannot be changed", cure: true, check: "store-place", where: ".local/share", what: "read-only", plant: func(g *garden, _ *question) {
			g.remount(g.data, "ro")
		}},
		{name: "packages on another machine's disk", check: "store-place", where: ".local/share", what: "nfs4", plant: func(g *garden, q *question) {
			q.Root = g.recorded(map[string]string{"proc/self/mountinfo": "36 1 0:32 / / rw,relatime shared:1 - nfs4 server:/export rw,vers=4.2\n"})
		}},
		{name: "no room for a switch", check: "disk-space", where: "state/1bit", what: "a switch needs", also: []string{"store-place"}, plant: func(g *garden, _ *question) {
			g.later(func() { g.asRoot("umount", g.state) })
			if err := g.host.MountSmall(g.Context(), g.state, 48<<10); err != nil {
				g.Fatal(err)
			}
		}},
		{name: "state that is gone after a reboot", check: "store-place", where: "state/1bit", what: "memory", plant: func(g *garden, _ *question) {
			g.later(func() { g.asRoot("umount", g.state) })
			if err := g.host.MountSmall(g.Context(), g.state, 4<<20); err != nil {
				g.Fatal(err)
			}
		}},
		{name: "state of root's", cure: true, check: "writable", where: "1bit/proposals", what: "uid 0", plant: func(g *garden, _ *question) {
			g.later(func() { g.asRoot("rmdir", filepath.Join(g.state, "proposals")) })
			g.asRoot("mkdir", filepath.Join(g.state, "proposals"))
		}},
		{name: "staging of root's", cure: true, check: "writable", where: ".1bit-staging", what: "may not write there", plant: func(g *garden, _ *question) {
			g.chown(filepath.Join(g.data, ".1bit-staging"), "root")
		}},
		{name: "an install of root's that was cut off", cure: true, check: "staging", where: "install-cut", what: "cut off", plant: func(g *garden, _ *question) {
			cut := filepath.Join(g.data, ".1bit-staging/install-cut")
			g.later(func() { g.asRoot("rm", "-rf", cut) })
			g.asRoot("sh", "-c", "mkdir -m 700 "+cut+" && touch "+cut+"/part && touch -d '3 days ago' "+cut)
		}},
		{name: "a policy that everybody may write", cure: true, check: "open-to-others", where: "config.yaml", what: "every account", plant: func(g *garden, _ *question) {
			path := filepath.Join(g.home, ".config/1bit/config.yaml")
			g.write(path, "restart: confirm\n")
			g.chmod(path, 0o666)
		}},
		{name: "a policy of root's in the user's hands", cure: true, check: "open-to-others", where: "/etc/1bit", what: "account ai", root: true, plant: func(g *garden, q *question) {
			q.Policy.File, q.Policy.Restart = "/etc/1bit/config.yaml", "confirm"
			g.chown("/etc/1bit", g.host.User)
		}},
		{name: "units that everybody may write", cure: true, check: "open-to-others", where: "systemd/user", what: "every account", plant: func(g *garden, _ *question) {
			g.chmod(g.units, 0o777)
		}},
		{name: "a device that the account may not use", cure: true, check: "device-access", where: "/dev/onebit0", what: "runs as ai", plant: func(g *garden, _ *question) {
			g.later(func() { g.asRoot("rm", "-f", "/dev/onebit0") })
			g.asRoot("mknod", "-m", "600", "/dev/onebit0", "c", "1", "3")
			for _, file := range []string{"/etc/group", "/etc/gshadow"} {
				g.keep(file)
			}
			g.install("ccc0003", requires(packager.Requirement{Kind: packager.RequireDevice, Name: "/dev/onebit0"}))
			g.switchTo("hrx-ccc0003")
			g.restart()
		}},
		{name: "a device that is gone", check: "device-access", where: "/dev/onebit1", what: "not there", plant: func(g *garden, _ *question) {
			g.later(func() { g.asRoot("rm", "-f", "/dev/onebit1") })
			g.asRoot("mknod", "-m", "666", "/dev/onebit1", "c", "1", "3")
			g.install("ccc0006", requires(packager.Requirement{Kind: packager.RequireDevice, Name: "/dev/onebit1"}))
			g.switchTo("hrx-ccc0006")
			g.restart()
			g.asRoot("rm", "/dev/onebit1")
		}},
		{name: "a kernel parameter of another value", check: "kernel-parameter", where: "amdgpu.cwsr_enable", what: "it is 1, and hrx-ddd0004 wants 0", plant: func(g *garden, q *question) {
			g.install("ddd0004", requires(packager.Requirement{Kind: packager.RequireKernelParameter, Name: "amdgpu.cwsr_enable", Value: "0"}))
			q.Root = g.recorded(map[string]string{"sys/module/amdgpu/parameters/cwsr_enable": "1\n"})
		}},
		{name: "merging of pages under a package without the fix", check: "eviction", where: "/sys/kernel/mm/ksm/run", what: "hrx-eee0005", plant: func(g *garden, q *question) {
			g.install("eee0005", func(m *packager.Manifest) {
				m.Fixes = []packager.Fix{{ID: "engine#123", Component: "engine", Commits: []string{"00adc2b"}, Carried: new(bool), How: "asked of git"}}
			})
			g.switchTo("hrx-eee0005")
			g.restart()
			q.Root = g.recorded(map[string]string{"sys/kernel/mm/ksm/run": "1\n", "proc/sys/vm/compaction_proactiveness": "20\n"})
		}},
		{name: "a fault of the GPU", check: "gpu-fault", where: "0000:0b:00.0", what: "page-fault since the boot, the last one by llama-server (process 5100)", plant: func(g *garden, q *question) {
			q.Root = g.recorded(map[string]string{"dev/kmsg": "3,1201,300100000,-;amdgpu 0000:0b:00.0: amdgpu: [gfxhub0] retry page fault (src_id:0 ring:0 vmid:5 pasid:32772, for process llama-server pid 5100 thread llama-server pid 5100)\n"})
		}},
		{name: "a lock that cannot be made", cure: true, check: "claim-lock", where: "/etc/gpu.lock", what: "cannot be used", plant: func(g *garden, q *question) {
			q.Claim = "/etc/gpu.lock"
			g.keep("/etc/gpu.lock")
			g.keep("/etc/tmpfiles.d/1bit-gpu.conf")
		}},
		{name: "less memory than a claim wants", check: "claim-lock", where: "", what: "claims are refused now", plant: func(_ *garden, q *question) {
			q.FloorGiB = 1 << 20
		}},
		{name: "a clock that is behind", check: "clock", where: armed, what: "2020-01-01", plant: func(_ *garden, q *question) {
			q.Now = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		}},
	}
}

// requires adds a requirement to a package.
func requires(r packager.Requirement) func(m *packager.Manifest) {
	return func(m *packager.Manifest) { m.Requires = append(m.Requires, r) }
}
