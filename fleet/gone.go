package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// StateGone is Service.State of a unit that has no file any more.
const StateGone = "gone"

// gone describes a service whose unit file is gone: our files for it remain, or its processes still run from a
// package. It is nil where neither is so.
func (h *Host) gone(name string, procs []procInfo, pl *place) (*Service, error) {
	live := liveOf(procs, firstOf(procs), pl, nil)
	if _, runs := live.runs(); !runs && !h.exists(name) {
		return nil, nil
	}
	s, err := h.fromFiles(name, pl)
	if err != nil {
		return nil, err
	}
	s.State, s.Live = StateGone, live
	if live != nil {
		s.find("unit-gone", fmt.Sprintf("put the file back, or stop it with: systemctl %sstop %s", h.managerFlag(), name),
			"its unit file is gone and its processes still run")
	}
	if h.exists(name) {
		s.find("unit-gone", "put the file back, or remove what remains with: 1bit pkg unswitch "+name,
			"its unit file is gone and what this program wrote for it remains in %s", h.dropInDir(name))
	}
	return s, nil
}

// firstOf is the main process of a unit of which the manager tells none: the oldest that no other of them started.
func firstOf(procs []procInfo) (pid int) {
	var first *procInfo
	for i, p := range procs {
		child := slices.ContainsFunc(procs, func(other procInfo) bool { return other.pid == p.parent })
		if !child && (first == nil || p.since.Before(first.since)) {
			first = &procs[i]
		}
	}
	if first == nil {
		return 0
	}
	return first.pid
}

// managerFlag is what systemctl needs to speak to the scope's manager.
func (h *Host) managerFlag() string {
	if h.Scope == "system" {
		return ""
	}
	return "--user "
}

// fromFiles describes a unit from our files alone.
func (h *Host) fromFiles(unit string, pl *place) (*Service, error) {
	v := &view{place: pl, path: filepath.Join(h.dropInDir(unit), dropInName)}
	if err := v.readPair(pair{h.dropInDir(unit)}); err != nil {
		return nil, err
	}
	s := &Service{Unit: unit, Scope: h.Scope, User: h.Owner, Health: HealthUnknown}
	if v.active != nil {
		s.OnDisk = armedOf(v.active.Package)
		s.RolledBack = v.active.RolledBackFrom.Name
		for _, a := range v.active.Environment {
			s.Binding = append(s.Binding, Setting{Setting: a.Key, Value: a.Value})
		}
	} else if lone := v.lone(); lone != nil {
		s.RolledBack = lone.Package.Name
	}
	for _, b := range v.blocks() {
		s.Blocked = append(s.Blocked, Refused{b.Name, b.Reason})
	}
	h.describeHold(unit, s)
	h.describeProposal(unit, s, pl)
	return s, nil
}

// staged tells whether a switch was cut off between its renames.
func (p pair) staged() bool {
	for _, name := range []string{nextName, prevNextName} {
		if _, err := os.Lstat(p.path(name)); err == nil {
			return true
		}
	}
	return false
}
