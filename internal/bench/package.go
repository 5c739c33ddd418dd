package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	tarCommand = "tar --zstd -xf, then sync -f"
	tarScript  = `mkdir "$2" && tar --zstd -xf "$1" -C "$2" && sync -f "$2"`
	sumScript  = `cd "$1" && find . -type f -print0 | xargs -0 -n 16 -P "$(nproc)" sha256sum`
)

// build measures building a package and returns it.
func (b *bench) build(s sample) (*built, error) {
	recipePath := filepath.Join(b.work, s.name+".yaml")
	if err := os.WriteFile(recipePath, []byte(s.recipe), 0o644); err != nil {
		return nil, err
	}
	peerOut := filepath.Join(b.work, "peer.tar.zst")
	defer os.Remove(peerOut)
	out := func(round int) string { return filepath.Join(b.work, fmt.Sprint(s.name, "-out", round)) }
	ours, peer, memory, err := inTurn((s.rounds+2)/3, func(round int) (run, error) {
		return timed(b.ctx, filepath.Join(b.bin, "1bit"), "pkg", "build", "--recipe", recipePath, "--tree", s.dir, "--out", out(round), "--version", "v2026.44")
	}, func(int) (run, error) {
		return timed(b.ctx, "sh", "-c", `tar -C "$1" -cf - . | zstd -q -f -T0 -19 -o "$2"`, "sh", s.dir, peerOut)
	})
	if err != nil {
		return nil, err
	}
	const command = "tar -cf - | zstd -T0 -19"
	ratio("build_time_"+s.name, ours, peer, "s", 0.25, command)
	found, err := filepath.Glob(filepath.Join(out(0), "*.tar.zst"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%d archives built: %v", len(found), err)
	}
	ratio("build_size_"+s.name, fileSize(found[0]), fileSize(peerOut), "MB", 1.09, command)
	memoryPeak("build_memory_"+s.name, memory)
	return &built{s, found[0]}, nil
}

// install measures installing into an empty data home.
func (b *bench) install(p *built) error {
	name := func(kind string, round int) string {
		return filepath.Join(b.work, fmt.Sprint(p.name, "-", kind, round))
	}
	// Nothing is deleted between the rounds: ext4 takes long to make files where many were deleted just now.
	ours, peer, memory, err := inTurn(max(p.rounds, 3), func(round int) (run, error) {
		return b.program(name("home", round), "pkg", "install", p.archive)
	}, func(round int) (run, error) {
		return timed(b.ctx, "sh", "-c", tarScript, "sh", p.archive, name("tar", round))
	})
	if err != nil {
		return err
	}
	ratio("install_vs_tar_"+p.name, ours, peer, "s", 1, tarCommand)
	memoryPeak("install_memory_"+p.name, memory)
	for round := range max(p.rounds, 3) {
		if round > 0 {
			removeAll(name("home", round))
		}
		removeAll(name("tar", round))
	}
	return os.Rename(name("home", 0), b.home(p))
}

// home is where the package was installed.
func (b *bench) home(p *built) string { return filepath.Join(b.work, p.name+"-home") }

// verify measures the check of every byte of the installed package.
func (b *bench) verify(p *built) error {
	home := b.home(p)
	defer removeAll(home)
	ours, peer, memory, err := inTurn(max(p.rounds, 3), func(int) (run, error) {
		return b.program(home, "pkg", "verify")
	}, func(int) (run, error) {
		return timed(b.ctx, "sh", "-c", sumScript, "sh", home)
	})
	if err != nil {
		return err
	}
	ratio("verify_vs_sha256sum_"+p.name, ours, peer, "s", 1, "sha256sum, a process for each core")
	memoryPeak("verify_memory_"+p.name, memory)
	return nil
}

// peers prints, without a target, how installing compares with two other package managers that are here.
func (b *bench) peers(p *built) error {
	if p.name == "2GiB_file" {
		return nil // minutes, for nothing
	}
	round := 0
	install := func(int) (run, error) {
		round++
		home := filepath.Join(b.work, fmt.Sprint("peer-home", round))
		defer removeAll(home)
		return b.program(home, "pkg", "install", p.archive)
	}
	fresh := func() string {
		round++
		return filepath.Join(b.work, fmt.Sprint("peer", round))
	}
	if has("dpkg") {
		if err := b.dpkg(p, install, fresh); err != nil {
			return err
		}
	}
	if has("ostree") {
		ours, peer, _, err := inTurn(3, install, func(int) (run, error) {
			dir := fresh()
			defer removeAll(dir)
			if _, err := timed(b.ctx, "ostree", "--repo="+dir, "init", "--mode=bare-user"); err != nil {
				return run{}, err
			}
			return timed(b.ctx, "sh", "-c", `ostree --repo="$1" commit -b x --tree=dir="$2" && ostree --repo="$1" checkout -U x "$1/out" && sync -f "$1"`, "sh", dir, p.dir)
		})
		if err != nil {
			return err
		}
		compared("install_vs_ostree_"+p.name, ours, peer, "s", "ostree commit, checkout, sync -f")
	}
	return nil
}

func (b *bench) dpkg(p *built, install func(int) (run, error), fresh func() string) error {
	out := fresh()
	defer removeAll(out)
	_, err := timed(b.ctx, filepath.Join(b.bin, "1bit"), "pkg", "build", "--recipe", filepath.Join(b.work, p.name+".yaml"),
		"--tree", p.dir, "--out", out, "--version", "v2026.44", "--format", "deb")
	if err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(out, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("%d deb packages built: %v", len(debs), err)
	}
	ours, peer, _, err := inTurn(3, install, func(int) (run, error) {
		root := fresh()
		defer removeAll(root)
		admin := filepath.Join(root, "var/lib/dpkg")
		for _, dir := range []string{"info", "updates", "triggers"} {
			if err := os.MkdirAll(filepath.Join(admin, dir), 0o755); err != nil {
				return run{}, err
			}
		}
		if err := os.WriteFile(filepath.Join(admin, "status"), nil, 0o644); err != nil {
			return run{}, err
		}
		cmd := exec.CommandContext(b.ctx, "dpkg", "--instdir="+root, "--admindir="+admin,
			"--force-depends", "--force-not-root", "--force-script-chrootless", "--force-bad-path", "-i", debs[0])
		return timedCommand(cmd)
	})
	if err != nil {
		return err
	}
	compared("install_vs_dpkg_"+p.name, ours, peer, "s", "dpkg -i")
	return nil
}
