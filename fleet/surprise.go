package fleet

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/secret"
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
		refuses := p.String() == why
		p.What = v.shown(p)
		f := Finding{Check: "unit-file", Where: p.File, What: p.String(), Remedy: "see whether that is meant"}
		if p.Line > 0 {
			f.Where = at(p.File, p.Line)
		}
		says := func(texts ...string) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(p.What, text) })
		}
		switch {
		case h.Scope == systemd.ScopeSystem && os.Geteuid() != 0 && says(fs.ErrPermission.Error()): // systemd may read it
			f.Check, f.Remedy = "", "only root can tell"
		case masked && refuses, says("there is no section ["): // misplaced tells
			continue
		case refuses:
			f.Remedy = "correct it: nothing can start the unit before that"
		case p.Fatal:
			f.Remedy = "correct it: what the file says behind it is lost"
		case p.Line == 0 && isLink(p.File) && leadsNowhere(p.File):
			f.Remedy = "remove the link, or put a file where it leads"
		case says("it belongs into ["):
			f.Check, f.Remedy = "misplaced-key", "move the line there"
		case says("that should be doubled"):
			f.Check, f.Remedy = "quoting", "write %% for a percent sign"
		case says("not a valid assignment", "from here on ignored"):
			f.Check, f.Remedy = "quoting", `write the whole assignment in double quotes: Environment="KEY=a value"`
		}
		s.add(f)
	}
}

// shown is what a problem says, without what it quotes of a line that has a secret in it.
func (v *view) shown(p systemd.Problem) string {
	for _, line := range v.settings.Lines() {
		text := line.Key + "=" + line.Value
		if before, _, quotes := strings.Cut(p.What, ": "); quotes && line.File == p.File && line.Number == p.Line && secret.Text(text) != text {
			return before + ": " + secret.Mask
		}
	}
	return p.What
}

func leadsNowhere(link string) bool {
	_, err := os.Stat(link)
	return absent(err)
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

// wrongSections are the keys that people put into the wrong one, where systemd ignores them, and of which the reader of
// the files says nothing.
var wrongSections = []struct {
	right string
	keys  []string
}{
	{"Unit", []string{"After", "Before", "Wants", "Requires", "BindsTo", "PartOf", "Conflicts"}},
	{"Service", []string{"Environment", "EnvironmentFile", "UnsetEnvironment", "ExecStart", "ExecStartPre", "ExecStop"}},
	{"Install", []string{"WantedBy", "RequiredBy", "Alias"}},
}

// serviceSections are the ones that systemd knows in the files of a service.
var serviceSections = []string{"Unit", "Service", "Install"}

// misplaced looks for keys that have no effect where they stand, and for sections that systemd does not know.
func misplaced(v *view, s *Service) {
	var told []string
	for _, line := range v.settings.Lines() {
		from := at(line.File, line.Number)
		switch known := slices.Contains(serviceSections, line.Section); {
		case !known && line.Section != "" && !strings.HasPrefix(line.Section, "X-") && !slices.Contains(told, line.File+line.Section):
			told = append(told, line.File+line.Section)
			s.add(Finding{
				Check: "misplaced-key", Where: from, Remedy: "spell the section as systemd does: " + strings.Join(serviceSections, ", "),
				What: fmt.Sprintf("%s sets %s= in [%s], a section that systemd does not know: it ignores all of it", from, line.Key, line.Section),
			})
		case known:
			if right := misspelt(line.Section, line.Key); right != "" {
				s.add(Finding{
					Check: "unit-file", Where: from, Remedy: fmt.Sprintf("write %s=", right),
					What: fmt.Sprintf("%s sets %s=, a key that systemd does not know: it ignores it", from, line.Key),
				})
			}
			for _, one := range wrongSections {
				if one.right != line.Section && slices.Contains(one.keys, line.Key) {
					s.add(Finding{
						Check: "misplaced-key", Where: from, Remedy: fmt.Sprintf("move the line into [%s]", one.right),
						What: fmt.Sprintf("%s sets %s= in [%s], where systemd ignores it", from, line.Key, line.Section),
					})
				}
			}
		}
	}
}
