package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// surprises looks for what is wrong with a unit's files in ways that systemd does not speak of.
func (h *Host) surprises(v *view, s *Service) {
	h.atBoot(v, s)
	misplaced(v, s)
	if disk := v.settings.Last("Service", "Type"); !v.same && disk.Line.Value != "" && v.loaded.Type != "" && disk.Line.Value != v.loaded.Type {
		s.add(Finding{
			Check: "not-loaded", Where: at(disk.File, disk.Line.Number), Remedy: "see that this is meant before anybody reloads",
			What: fmt.Sprintf("its files say Type=%s and loaded is Type=%s", disk.Line.Value, v.loaded.Type),
		})
	}
	why, _ := v.settings.Refused()
	masked := v.loaded.LoadState == "masked" || v.loaded.FragmentPath != "" && masks(v.loaded.FragmentPath)
	if masked {
		s.find("masked", h.unmask(v.loaded), "it is masked by %s: nothing starts it", maskedBy(v.loaded.FragmentPath))
	}
	for _, p := range v.settings.Problems {
		f := Finding{Check: "unit-file", Where: p.File, What: p.String(), Remedy: "see whether that is meant"}
		if p.Line > 0 {
			f.Where = at(p.File, p.Line)
		}
		switch {
		case masked && f.What == why:
			continue
		case f.What == why:
			f.Remedy = "correct it: nothing can start the unit before that"
		case p.Fatal:
			f.Remedy = "correct it: what the file says behind it is lost"
		case strings.Contains(p.What, "it belongs into ["):
			f.Check, f.Remedy = "misplaced-key", "move the line there"
		}
		s.add(f)
	}
}

// systemTargets are what a system's unit is wanted by and a user manager does not have.
var systemTargets = []string{"multi-user.target", "graphical.target", "network-online.target", "network.target", "sysinit.target"}

// atBoot looks whether a user's service is there after a reboot and a logout.
func (h *Host) atBoot(v *view, s *Service) {
	if h.Scope == systemd.ScopeSystem {
		return
	}
	for _, value := range v.settings.Values("Install", "WantedBy") {
		for word := range strings.FieldsSeq(value.Value) {
			if slices.Contains(systemTargets, word) {
				from := at(value.File, value.Number)
				s.add(Finding{
					Check: "wanted-by", Where: from, Remedy: "write WantedBy=default.target and run: systemctl --user reenable " + v.loaded.ID,
					What: fmt.Sprintf("%s says WantedBy=%s, which a user manager does not have: it is not started at boot", from, word),
				})
			}
		}
	}
	lingering := h.below("var/lib/systemd/linger")
	if who := or(h.Owner, h.User); who != "" {
		if _, err := os.Lstat(filepath.Join(lingering, who)); absent(err) {
			s.find("linger", "loginctl enable-linger "+who, "%s does not linger: the service ends with the last logout and does not start at boot", who)
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
func misplaced(v *view, s *Service) {
	for _, one := range sections {
		for _, value := range v.settings.Values(one.wrong, one.key) {
			from := at(value.File, value.Number)
			s.add(Finding{
				Check: "misplaced-key", Where: from, Remedy: fmt.Sprintf("move the line into [%s]", one.right),
				What: fmt.Sprintf("%s sets %s= in [%s], where systemd ignores it", from, one.key, one.wrong),
			})
		}
	}
}
