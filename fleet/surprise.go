package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// Finding is something about a unit that will surprise its owner, and what to do about it.
type Finding struct {
	Unit   string
	What   string
	Remedy string // one sentence, as a command where there is one
}

// surprises looks for what is wrong with a unit's files in ways that systemd does not speak of.
func (h *Host) surprises(v *view) []Finding {
	var found []Finding
	add := func(remedy, what string, args ...any) {
		found = append(found, Finding{v.loaded.ID, fmt.Sprintf(what, args...), remedy})
	}
	h.atBoot(v, add)
	misplaced(v, add)
	if disk := v.settings.Last("Service", "Type").Line.Value; !v.same && disk != "" && v.loaded.Type != "" && disk != v.loaded.Type {
		add("see that this is meant before anybody reloads", "its files say Type=%s and loaded is Type=%s", disk, v.loaded.Type)
	}
	why, _ := v.settings.Refused()
	masked := v.loaded.LoadState == "masked" || v.loaded.FragmentPath != "" && masks(v.loaded.FragmentPath)
	if masked {
		add(h.unmask(v.loaded), "it is masked by %s: nothing starts it", maskedBy(v.loaded.FragmentPath))
	}
	for _, p := range v.settings.Problems {
		switch {
		case masked && p.String() == why:
		case p.String() == why:
			add("correct it: nothing can start the unit before that", "%v", p)
		case p.Fatal:
			add("correct it: what the file says behind it is lost", "%v", p)
		default:
			add("see whether that is meant", "%v", p)
		}
	}
	return found
}

// systemTargets are what a system's unit is wanted by and a user manager does not have.
var systemTargets = []string{"multi-user.target", "graphical.target", "network-online.target", "network.target", "sysinit.target"}

// atBoot looks whether a user's service is there after a reboot and a logout.
func (h *Host) atBoot(v *view, add func(remedy, what string, args ...any)) {
	if h.Scope == systemd.ScopeSystem {
		return
	}
	for _, value := range v.settings.Values("Install", "WantedBy") {
		for word := range strings.FieldsSeq(value.Value) {
			if slices.Contains(systemTargets, word) {
				add("write WantedBy=default.target and run: systemctl --user reenable "+v.loaded.ID,
					"%s:%d says WantedBy=%s, which a user manager does not have: it is not started at boot", value.File, value.Number, word)
			}
		}
	}
	lingering := h.below("var/lib/systemd/linger")
	if who := or(h.Owner, h.User); who != "" {
		if _, err := os.Lstat(filepath.Join(lingering, who)); absent(err) {
			add("loginctl enable-linger "+who, "%s does not linger: the service ends with the last logout and does not start at boot", who)
		}
	}
}

// sections are the keys that people put into the wrong one, where systemd ignores them, and of which the reader of the
// files says nothing.
var sections = []struct{ key, wrong, right string }{
	{"After", "Service", "Unit"}, {"Wants", "Service", "Unit"}, {"Requires", "Service", "Unit"},
	{"WantedBy", "Service", "Install"}, {"WantedBy", "Unit", "Install"},
	{"Environment", "Unit", "Service"}, {"EnvironmentFile", "Unit", "Service"}, {"ExecStart", "Unit", "Service"},
}

// misplaced looks for keys that have no effect where they stand.
func misplaced(v *view, add func(remedy, what string, args ...any)) {
	for _, s := range sections {
		for _, value := range v.settings.Values(s.wrong, s.key) {
			add(fmt.Sprintf("move the line into [%s]", s.right), "%s:%d sets %s= in [%s], where systemd ignores it", value.File, value.Number, s.key, s.wrong)
		}
	}
}
