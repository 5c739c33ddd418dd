package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const benchUnit = "1bit-bench.service"

// benchSwitch measures a switch without restart on this user's own systemd, with a unit that it removes.
func benchSwitch(ctx context.Context, bin string) (err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(home, "1bit-bench-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	program := filepath.Join(bin, "1bit")
	common := []string{"--config", filepath.Join(work, "config.yaml")}
	config := fmt.Sprintf("scope: user\nrestart: free\ndata_home: %s/packages\nstate_home: %s/state\n", work, work)
	tree := filepath.Join(work, "tree")
	for path, text := range map[string]string{
		common[1]:                            config,
		filepath.Join(work, "recipe.yaml"):   recipe,
		filepath.Join(tree, "1bit"):          "#!/bin/sh\necho version: none\n",
		tree + "/hrx/llama/bin/llama-server": "#!/bin/sh\n[ \"$1\" = --version ] || exec sleep infinity\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return err
		}
	}
	for _, id := range []string{"aaaaaaa", "bbbbbbb"} {
		for _, args := range [][]string{
			{"pkg", "build", "--recipe", work + "/recipe.yaml", "--tree", tree, "--out", work + "/dist", "--id", id},
			{"pkg", "install", work + "/dist/1bit-hrx-" + id + "*"},
		} {
			if found, _ := filepath.Glob(args[len(args)-1]); len(found) == 1 {
				args[len(args)-1] = found[0]
			}
			if _, err := timed(ctx, program, append(common[:2:2], args...)...); err != nil {
				return err
			}
		}
	}
	unit := filepath.Join(home, ".config", "systemd", "user", benchUnit)
	if err := os.MkdirAll(filepath.Dir(unit), 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("[Service]\nExecStart=/bin/sh -c 'exec \"$ONEBIT_LLAMA_SERVER\"'\n"+
		"Environment=ONEBIT_LLAMA_SERVER=%s/packages/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server\n", work)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		return err
	}
	systemctl := func(args ...string) (run, error) {
		return timed(ctx, "systemctl", append([]string{"--user"}, args...)...)
	}
	defer func() {
		_, stopErr := systemctl("stop", benchUnit)
		_ = os.RemoveAll(unit + ".d")
		_ = os.Remove(unit)
		_, reloadErr := systemctl("daemon-reload")
		err = errors.Join(err, stopErr, reloadErr)
	}()
	if _, err := systemctl("daemon-reload"); err != nil {
		return err
	}
	if _, err := systemctl("start", benchUnit); err != nil {
		return err
	}
	ours, peer, _, err := inTurn(21, func(round int) (run, error) {
		id := []string{"bbbbbbb", "aaaaaaa"}[round%2]
		return timed(ctx, program, append(common[:2:2], "pkg", "switch", benchUnit, id)...)
	}, func(int) (run, error) { return systemctl("daemon-reload") })
	if err != nil {
		return err
	}
	fmt.Printf("# on %s\n", fileSystem(work))
	ratio("switch_vs_reload", ours*1000, peer*1000, "ms", 1.5, "systemctl --user daemon-reload")
	return nil
}

// fileSystem names the file system that a folder lies on.
func fileSystem(dir string) string {
	out, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
	if err != nil {
		return "an unknown file system"
	}
	return fmt.Sprintf("file system %s (%s)", strings.TrimSpace(string(out)), dir)
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
