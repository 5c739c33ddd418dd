package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// services are units of this user's own systemd that run from packages of ours: they are made for the measurement
// and removed after it.
type services struct {
	ctx     context.Context
	program string // ours
	work    string // packages, state, configuration
	policy  string // the owner's configuration, where it was made here; "": it was there
	dir     string // the user's unit files
	units   []string
}

// newServices makes an empty store in the user's home folder.
func newServices(ctx context.Context, bin string) (*services, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(home, "1bit-bench-")
	if err != nil {
		return nil, err
	}
	s := &services{ctx: ctx, program: filepath.Join(bin, "1bit"), work: work, dir: filepath.Join(home, ".config", "systemd", "user")}
	if own := filepath.Join(home, ".config", "1bit", "config.yaml"); absent(own) { // nobody is asked, and only the owner's own file can say so
		if err := writeFiles(map[string]string{own: "restart: free\n"}); err != nil {
			return nil, err
		}
		s.policy = own
	}
	return s, writeFiles(map[string]string{
		s.config():                          fmt.Sprintf("scope: user\nrestart: free\ndata_home: %s/packages\nstate_home: %s/state\n", work, work),
		filepath.Join(work, "recipe.yaml"):  recipe,
		filepath.Join(work, "tree", "1bit"): "#!/bin/sh\necho version: none\n",
	})
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (s *services) config() string { return filepath.Join(s.work, "config.yaml") }

func writeFiles(texts map[string]string) error {
	for path, text := range texts {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// onebit times a command of ours.
func (s *services) onebit(args ...string) (run, error) {
	return timed(s.ctx, s.program, append([]string{"--config", s.config(), "pkg"}, args...)...)
}

func (s *services) systemctl(args ...string) (run, error) {
	return timed(s.ctx, "systemctl", append([]string{"--user"}, args...)...)
}

// install builds and installs packages whose server is a program with this text.
func (s *services) install(server string, ids ...string) error {
	tree := filepath.Join(s.work, "tree")
	if err := writeFiles(map[string]string{tree + "/hrx/llama/bin/llama-server": server}); err != nil {
		return err
	}
	for _, id := range ids {
		dist := filepath.Join(s.work, "dist", id)
		if _, err := s.onebit("build", "--recipe", s.work+"/recipe.yaml", "--tree", tree, "--out", dist, "--id", id); err != nil {
			return err
		}
		found, err := filepath.Glob(dist + "/*.tar.zst")
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%d archives built of %s: %v", len(found), id, err)
		}
		if _, err := s.onebit("install", found[0]); err != nil {
			return err
		}
	}
	return nil
}

// start writes units, each with the package it runs from, and starts them.
func (s *services) start(arguments string, packages map[string]string) error {
	texts := map[string]string{}
	names := []string{"start"}
	for unit, id := range packages {
		texts[filepath.Join(s.dir, unit)] = fmt.Sprintf("[Service]\nExecStart=/bin/sh -c 'exec \"$ONEBIT_LLAMA_SERVER\" %s'\n"+
			"Environment=ONEBIT_LLAMA_SERVER=%s/packages/1bit-hrx-%s/hrx/llama/bin/llama-server\n", arguments, s.work, id)
		names = append(names, unit)
	}
	s.units = append(s.units, names[1:]...)
	if err := writeFiles(texts); err != nil {
		return err
	}
	if _, err := s.systemctl("daemon-reload"); err != nil {
		return err
	}
	_, err := s.systemctl(names...)
	return err
}

// awaitHealth waits until status says that the unit answers.
func (s *services) awaitHealth(unit string) error {
	for range 100 {
		text, err := s.status(unit)
		if err != nil {
			return err
		}
		if strings.Contains(text, `"health":"ok"`) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s does not answer", unit)
}

// status is what our status prints of these units as JSON without blanks, of all for none.
func (s *services) status(units ...string) (string, error) {
	text, err := output(s.ctx, s.program, append([]string{"--config", s.config(), "-o", "json", "pkg", "status"}, units...)...)
	return strings.Join(strings.Fields(text), ""), err
}

// stop stops and removes the units made so far.
func (s *services) stop() error {
	if len(s.units) == 0 {
		return nil
	}
	_, stopErr := s.systemctl(append([]string{"stop"}, s.units...)...)
	for _, unit := range s.units {
		path := filepath.Join(s.dir, unit)
		_ = os.RemoveAll(path + ".d")
		_ = os.Remove(path)
	}
	s.units = nil
	_, reloadErr := s.systemctl("daemon-reload")
	return errors.Join(stopErr, reloadErr)
}

func (s *services) remove() error {
	defer removeAll(s.work)
	if s.policy != "" {
		defer func() { _ = os.Remove(s.policy) }()
	}
	return s.stop()
}
