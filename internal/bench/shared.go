package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shared measures the installation of a second version that has nine tenths of the bytes in common with one that is
// installed, on a file system where files can share blocks.
func (b *bench) shared(p *built) error {
	if p.name == "2GiB_file" {
		return nil // one file is the same or it is not
	}
	if os.Getuid() != 0 || !has("mkfs.xfs") {
		fmt.Printf("# install_shared_%s not measured: it takes root and mkfs.xfs to mount a file system that shares blocks\n", p.name)
		return nil
	}
	second, err := b.secondVersion(p)
	if err != nil {
		return err
	}
	image, at := filepath.Join(b.work, "xfs.image"), filepath.Join(b.work, "xfs")
	defer os.Remove(image)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	const script = `truncate -s 4G "$1" && mkfs.xfs -q -m reflink=1 "$1" && mount -o loop "$1" "$2"`
	if _, err := timed(b.ctx, "sh", "-c", script, "sh", image, at); err != nil {
		return err
	}
	defer exec.Command("umount", at).Run()
	round := 0
	ours, peer, memory, err := inTurn(p.rounds, func(int) (run, error) {
		round++
		home := filepath.Join(at, fmt.Sprint("home", round))
		if _, err := b.program(home, "pkg", "install", p.archive); err != nil {
			return run{}, err
		}
		return b.program(home, "pkg", "install", second)
	}, func(int) (run, error) {
		dir := filepath.Join(at, fmt.Sprint("tar", round))
		return timed(b.ctx, "sh", "-c", tarScript, "sh", second, dir)
	})
	if err != nil {
		return err
	}
	ratio("install_shared_vs_tar_"+p.name, ours, peer, "s", 0.5, tarCommand+", both on XFS")
	memoryPeak("install_shared_memory_"+p.name, memory)
	return nil
}

// secondVersion builds the sample with a tenth of its bytes changed.
func (b *bench) secondVersion(p *built) (archive string, err error) {
	dir := filepath.Join(b.work, p.name+"-second")
	defer removeAll(dir)
	if err := copyTree(dir, p.dir); err != nil {
		return "", err
	}
	var total, changed int64
	type entry struct {
		path string
		size int64
	}
	var files []entry
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			total += info.Size()
			files = append(files, entry{path, info.Size()})
		}
		return err
	})
	if err != nil {
		return "", err
	}
	// What comes after the program's end harms neither an ELF file nor a piece of one.
	for _, f := range files {
		if changed+f.size > total/10 || f.size < 1<<10 || !strings.Contains(f.path, "/lib/") && !strings.Contains(f.path, "/data/") {
			continue
		}
		changed += f.size
		out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return "", err
		}
		_, err = out.WriteString("second version\n")
		if cerr := out.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return "", err
		}
	}
	out := filepath.Join(b.work, p.name+"-second-out")
	_, err = timed(b.ctx, filepath.Join(b.bin, "1bit"), "pkg", "build", "--recipe", filepath.Join(b.work, p.name+".yaml"),
		"--tree", dir, "--out", out, "--version", "v2026.45", "--id", "second")
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(out, "*.tar.zst"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d archives built: %v", len(found), err)
	}
	return found[0], nil
}
