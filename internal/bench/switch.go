package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const (
	benchUnit   = "1bit-bench.service"
	benchRounds = 21
	reload      = "systemctl --user daemon-reload"

	// What status is asked for.
	manyServices = 50
	manyPackages = 10
)

// benchSwitch measures the acts on services on this user's own systemd: a switch and a rollback without restart of a
// service that answers, and the status of many.
func benchSwitch(ctx context.Context, bin string) (err error) {
	s, err := newServices(ctx, bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	fmt.Printf("# on %s\n", fileSystem(s.work))
	for _, step := range []func() error{s.benchRollbackOfFirst, s.benchSwitch, s.benchRollback, s.benchStatus} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// serve installs packages with an engine that answers, and has a service run from the first.
func (s *services) serve() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server, err := os.ReadFile(self) // it serves when it is called llama-server
	if err != nil {
		return err
	}
	if err := s.install(string(server), "aaaaaaa", "bbbbbbb", "ccccccc"); err != nil {
		return err
	}
	if err := s.start("--port 18080", map[string]string{benchUnit: "aaaaaaa"}); err != nil {
		return err
	}
	return s.awaitHealth(benchUnit)
}

// benchRollbackOfFirst measures the rollback that removes our file, which is that of a first switch.
func (s *services) benchRollbackOfFirst() error {
	if err := s.serve(); err != nil {
		return err
	}
	return s.rollbacks("rollback_of_first_vs_reload", "bbbbbbb")
}

// benchSwitch measures a switch that writes both files, since the service was seen serving from a package of ours.
func (s *services) benchSwitch() error {
	if _, err := s.onebit("switch", benchUnit, "bbbbbbb"); err != nil {
		return err
	}
	if _, err := s.systemctl("restart", benchUnit); err != nil {
		return err
	}
	if err := s.awaitHealth(benchUnit); err != nil {
		return err
	}
	return s.againstReload("switch_vs_reload", func(round int) (run, error) {
		return s.onebit("switch", benchUnit, []string{"aaaaaaa", "ccccccc"}[round%2])
	})
}

// benchRollback measures the rollback that exchanges our two files.
func (s *services) benchRollback() error { return s.rollbacks("rollback_vs_reload", "aaaaaaa") }

// rollbacks measures rollbacks of switches to a package. The switch before each, and lifting the block after it,
// are not timed.
func (s *services) rollbacks(name, id string) error {
	return s.againstReload(name, func(int) (run, error) {
		if _, err := s.onebit("switch", benchUnit, id); err != nil {
			return run{}, err
		}
		took, err := s.onebit("rollback", benchUnit)
		if err != nil {
			return run{}, err
		}
		_, err = s.onebit("unblock", benchUnit, id)
		return took, err
	})
}

func (s *services) againstReload(name string, ours func(round int) (run, error)) error {
	a, b, _, err := inTurn(benchRounds, ours, func(int) (run, error) { return s.systemctl("daemon-reload") })
	if err != nil {
		return err
	}
	ratio(name, a*1000, b*1000, "ms", 1.25, reload)
	return nil
}

// benchStatus measures the status of many services, all running.
func (s *services) benchStatus() error {
	if err := s.stop(); err != nil {
		return err
	}
	var ids []string
	for i := range manyPackages {
		ids = append(ids, fmt.Sprintf("abcdef%x", i))
	}
	if err := s.install("#!/bin/sh\n[ \"$1\" = --version ] || exec sleep infinity\n", ids...); err != nil {
		return err
	}
	packages := map[string]string{}
	for i := range manyServices {
		packages[fmt.Sprintf("1bit-bench-%02d.service", i)] = ids[i%len(ids)]
	}
	if err := s.start("", packages); err != nil {
		return err
	}
	text, err := s.status()
	if err != nil {
		return err
	}
	if running := strings.Count(text, `"state":"active(running)"`); running != manyServices {
		return fmt.Errorf("status shows %d running services, not %d: %s", running, manyServices, text)
	}
	a, b, _, err := inTurn(benchRounds, func(int) (run, error) { return s.onebit("status") },
		func(int) (run, error) { return s.systemctl("list-units") })
	if err != nil {
		return err
	}
	fmt.Printf("# status of %d running services on %d packages\n", manyServices, manyPackages)
	ratio("status_vs_list_units", a*1000, b*1000, "ms", 1.5, "systemctl --user list-units")
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
