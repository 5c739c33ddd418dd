package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// A sample is a tree to build, install and verify, and how often.
type sample struct {
	name   string
	dir    string
	recipe string
	rounds int // of install and verify; a build is timed (rounds+2)/3 times
}

const recipe = `flavour: hrx
include: [1bit, hrx/llama]
fix_runpath: true
entry_points: {1bit: 1bit, llama-server: hrx/llama/bin/llama-server}
front_door: [serve]
components:
  engine: {commit: 7871c71d}
`

const plainRecipe = `flavour: hrx
include: [1bit, data]
entry_points: {1bit: 1bit}
components:
  engine: {commit: 7871c71d}
`

const (
	smallFiles = 2000
	bigFile    = 2 << 30 // bytes
)

// samples are the real engine tree, one of many small files and one of a single large file. The contents of the
// two are pieces of the engine's own files, so that they compress as engines do. A process of its own makes them: the
// kernel counts what a parent held as a child's memory.
func (b *bench) samples() ([]sample, error) {
	if _, err := timed(b.ctx, filepath.Join(b.bin, "bench"), "-make-samples", b.work, b.tree); err != nil {
		return nil, err
	}
	return []sample{
		{"engine", b.tree, recipe, 9},
		{"2000_small", filepath.Join(b.work, "small"), plainRecipe, 9},
		{"2GiB_file", filepath.Join(b.work, "big"), plainRecipe, 1},
	}, nil
}

func makeSamples(work, tree string) error {
	source, err := pieces(tree)
	if err != nil {
		return err
	}
	small, big := filepath.Join(work, "small"), filepath.Join(work, "big")
	for _, dir := range []string{small, big} {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "1bit"), []byte("#!/bin/sh\necho version: none\n"), 0o755); err != nil {
			return err
		}
	}
	if err := writeSmall(small, source, smallFiles); err != nil {
		return err
	}
	return writeBig(filepath.Join(big, "data", "kernels.bin"), source)
}

// pieces reads the engine's larger files, as material.
func pieces(tree string) ([]byte, error) {
	var all []byte
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	if err == nil && len(all) < 1<<20 {
		err = fmt.Errorf("the engine tree %s holds only %d bytes", tree, len(all))
	}
	return all, err
}

// writeSmall writes small files, of 1 to 16 KiB.
func writeSmall(dir string, source []byte, count int) error {
	for i := range count {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		n := 1<<10 + r.IntN(15<<10)
		at := r.IntN(len(source) - n)
		folder := filepath.Join(dir, "data", fmt.Sprintf("%02d", i%50))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("kernel-%04d.co", i)), source[at:at+n], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeBig writes one large file: two thirds pieces of the engine, changed every hundred bytes or so, one third
// noise, as quantised weights are.
func writeBig(path string, source []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(7, 7))
	noise := rand.NewChaCha8([32]byte{7})
	piece := make([]byte, 64<<10)
	for left := bigFile; left > 0; left -= len(piece) {
		if r.IntN(3) == 0 {
			_, _ = noise.Read(piece) // it never fails
		} else {
			at := r.IntN(len(source) - len(piece))
			copy(piece, source[at:])
			for i := r.IntN(200); i < len(piece); i += 1 + r.IntN(200) {
				piece[i] = byte(r.Uint32())
			}
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// copyTree copies a tree, so that one part of it can be changed.
func copyTree(dst, src string) error {
	return filepath.WalkDir(src, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
		if err != nil {
			return err
		}
		defer out.Close()
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
		return out.Close()
	})
}

// removeAll removes a folder that holds read-only ones.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
