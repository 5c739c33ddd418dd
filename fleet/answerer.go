package fleet

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// answerer fails where what answers is not the armed package. The process that holds the listening socket has to be
// of the package by what it is: a variable says what should have been started, and a wrapper, or a setting that wins
// over ours, starts something else. A front end that passes requests on may hold the socket where a server of the
// package works for it.
func (w *watched) answerer(c *engine.Client, procs []procInfo) error {
	at, err := netip.ParseAddrPort(strings.TrimPrefix(c.BaseURL, "http://"))
	if err != nil {
		return fmt.Errorf("read the address of the server: %w", err)
	}
	var holders, servers []procInfo
	for _, p := range procs {
		addresses, err := systemd.Listeners(w.h.proc(), []int{p.pid})
		if err != nil {
			return nil // another user's: whoever answers cannot be told
		}
		ref, proved := w.place.program(p)
		holds := slices.ContainsFunc(addresses, func(a netip.AddrPort) bool { return a.Port() == at.Port() })
		switch {
		case holds && proved && ref.same(w.pkg):
			return nil
		case holds && proved:
			return strange("the server runs from %s", ref.Name)
		case holds:
			holders = append(holders, p)
		case proved && ref.same(w.pkg):
			servers = append(servers, p)
		}
	}
	if len(holders) == 0 {
		return failf("the process that answered has ended")
	}
	for _, server := range servers {
		if descends(server, holders, procs) {
			return nil
		}
	}
	p := holders[len(holders)-1]
	return strange("what answers on port %d is process %d (%s), which is not of %s: some setting, or what ExecStart= starts, names another program",
		at.Port(), p.pid, or(p.exe, "unknown"), w.pkg.Name)
}

// descends tells whether one of the processes above is an ancestor of p.
func descends(p procInfo, above, all []procInfo) bool {
	for range all { // as many steps as there are processes
		at := slices.IndexFunc(all, func(q procInfo) bool { return q.pid == p.parent })
		if at < 0 {
			return false
		}
		if p = all[at]; contains(above, p.pid) {
			return true
		}
	}
	return false
}

// program is the package that a process runs a program of: its executable file, what a loader or an interpreter was
// given, never a library alone, which a variable can lend to any program.
func (p *place) program(q procInfo) (PackageRef, bool) {
	exe, _ := undeleted(q.exe)
	if ref, ok := p.at(exe); ok {
		return ref, true
	}
	if strings.HasPrefix(filepath.Base(exe), "ld-") || strings.HasPrefix(filepath.Base(exe), "ld.so") {
		for _, path := range q.mapped() {
			path, _ := undeleted(path)
			if strings.Contains(filepath.Base(path), ".so") || path == exe {
				continue
			}
			if ref, ok := p.at(path); ok {
				return ref, true
			}
		}
		return PackageRef{}, false
	}
	if strings.HasPrefix(filepath.Base(exe), "llama-") {
		return PackageRef{}, false
	}
	for _, arg := range q.argv[:min(2, len(q.argv))] {
		if ref, ok := p.at(arg); ok {
			return ref, true
		}
	}
	return PackageRef{}, false
}
