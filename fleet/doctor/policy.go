package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/systemd"
)

// Policy is what the configuration says of who may arm and restart a service.
type Policy struct {
	File    string // where it stands, also where that file is not there
	Restart string // confirm, grant or free
}

// meaning says what a policy does.
func (p Policy) meaning() string {
	switch p.Restart {
	case "grant":
		return "a service is armed or restarted only with a signed grant, and this version cannot check one: it refuses every such act"
	case "free":
		return "nobody is asked before a service is armed or restarted"
	}
	return "before a service is armed or restarted its owner is asked on a terminal"
}

// policy says how the owner's policy is enforced here, and what it does not protect from.
func policy(l *look) []string {
	if len(l.Hosts) == 0 || l.Policy.Restart == "" {
		return []string{}
	}
	from := "the policy of " + l.Policy.File
	if _, err := os.Stat(l.Policy.File); errors.Is(err, fs.ErrNotExist) {
		from = "the default, since there is no " + l.Policy.File
	}
	out := []string{fmt.Sprintf("restart: %s (%s): %s.", l.Policy.Restart, from, l.Policy.meaning())}
	if l.Hosts[0].Scope == systemd.ScopeSystem {
		out = append(out, "The services are the system's: only root may write their units and the policy, so that this separates accounts, and not only habits.")
		out = append(out, l.polkit())
	} else {
		out = append(out, fmt.Sprintf("The services run as %s, and so does who acts on them: the policy guards against accident, and not against malice. It does not protect from a program of this account, which can "+
			"write the units and the policy file itself and call systemctl --user; an agent that is to install, soak and propose without being able to restart needs an account of its own.", l.User))
	}
	out = append(out, l.rootly()...)
	return out
}

// rootGroups are the groups whose members can become root, or as good as root.
var rootGroups = []string{"sudo", "wheel", "admin", "docker", "lxd", "incus-admin", "libvirt", "disk"}

// rootly names who can act in spite of any policy, as far as groups tell.
func (l *look) rootly() []string {
	accounts, groups, err := l.accounts()
	if err != nil {
		return []string{fmt.Sprintf("Who can become root is not known: %v.", err)}
	}
	var who []string
	for _, name := range rootGroups {
		gid, ok := groups[name]
		for _, a := range accounts {
			if ok && a.uid != 0 && slices.Contains(a.groups, gid) {
				who = append(who, fmt.Sprintf("%s (%s)", a.name, name))
			}
		}
	}
	if len(who) == 0 {
		return nil
	}
	return []string{"No policy protects from root, and as root can act: " + strings.Join(who, ", ") + "."}
}

// polkit says who else than root may restart the system's services.
func (l *look) polkit() string {
	if !slices.ContainsFunc([]string{"usr/share", "usr/local/share", "etc", "run/current-system/sw/share"}, func(dir string) bool {
		_, err := os.Stat(l.path(dir, "dbus-1/system-services/org.freedesktop.PolicyKit1.service"))
		return err == nil
	}) {
		return "No polkit was found where it is usually installed: without one systemd starts and stops the system's services for root alone."
	}
	var rules, hidden []string
	for _, dir := range []string{"etc/polkit-1/rules.d", "run/polkit-1/rules.d", "usr/local/share/polkit-1/rules.d", "usr/share/polkit-1/rules.d"} {
		entries, err := os.ReadDir(l.path(dir))
		if errors.Is(err, fs.ErrPermission) {
			hidden = append(hidden, "/"+dir)
		}
		for _, e := range entries {
			text, err := procfs.Read(l.path(dir, e.Name()))
			switch {
			case err != nil:
				hidden = append(hidden, filepath.Join("/"+dir, e.Name()))
			case strings.Contains(string(text), "org.freedesktop.systemd1.manage-unit"):
				rules = append(rules, filepath.Join("/"+dir, e.Name()))
			}
		}
	}
	out := "Polkit lets administrators start and stop the system's services after they gave their password"
	if len(rules) > 0 {
		out += "; these rules speak of it, and may let others: " + strings.Join(rules, ", ")
	}
	if len(hidden) > 0 {
		out += "; rules in " + strings.Join(hidden, ", ") + " may not be read by this account, and were not looked at"
	}
	return out + "."
}
