package doctor

import (
	"context"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// ofStatus makes a check whose findings are those that fleet makes the warnings of status of. In remedy, UNIT stands for
// the unit.
func ofStatus(name, reason, remedy string) Check {
	return Check{Name: name, Reason: reason, Remedy: remedy, find: func(_ context.Context, l *look, add adder) error {
		services, err := l.services()
		for _, s := range services {
			s.told(name, remedy, add)
		}
		return err
	}}
}

// told adds what fleet has found of a service for one check, and says how often.
func (s service) told(name, remedy string, add adder) (times int) {
	for _, f := range s.Findings {
		if f.Check != name {
			continue
		}
		if f.Remedy != "" {
			remedy = f.Remedy
		}
		f.Remedy = s.typed(remedy)
		times++
		if f.Where == "" {
			add(s.where, f.Remedy, "%s", f.What)
		} else {
			add(f.Where, f.Remedy, "%s: %s", s.where, strings.TrimPrefix(strings.TrimPrefix(f.What, f.Where+": "), f.Where+" "))
		}
	}
	return times
}

// quiet adds nothing.
func quiet(string, string, string, ...any) {}

// typed is a remedy as it is to be typed in for this service.
func (s service) typed(remedy string) string {
	remedy = strings.ReplaceAll(remedy, "UNIT", s.Unit)
	if s.Scope == systemd.ScopeSystem {
		remedy = strings.ReplaceAll(remedy, "systemctl --user", "systemctl")
	}
	switch {
	case s.acts, s.Scope == systemd.ScopeUser && s.User == "": // the account's own
	case s.Scope == systemd.ScopeSystem:
		remedy = strings.NewReplacer("systemctl ", "sudo systemctl ", "1bit pkg ", "sudo 1bit pkg ").Replace(remedy)
	default: // root looks; an editor wants the account's own session, everything else of systemctl does not
		as := "sudo -iu " + s.User + " "
		remedy = strings.NewReplacer(
			"systemctl --user edit ", as+"env XDG_RUNTIME_DIR=/run/user/$(id -u "+s.User+") systemctl --user edit ",
			"systemctl --user ", "sudo systemctl --user -M "+s.User+"@ ",
			"journalctl --user ", as+"journalctl --user ",
			"1bit pkg ", as+"1bit pkg ", "1bit incident ", as+"1bit incident ",
		).Replace(remedy)
	}
	return remedy
}

// loaded tells whether there is a unit to look at: not one that is gone or masked, or that could not be read.
func (s service) loaded() bool {
	return s.Loaded != nil && s.Settings != nil && s.Loaded.LoadState == "loaded"
}

// up tells whether the service runs or is on its way there, also by itself after it failed.
func (s service) up() bool {
	return s.loaded() && (s.Loaded.ActiveState == "active" || s.Loaded.ActiveState == "activating" || s.Loaded.ActiveState == "reloading")
}

// meant tells whether the service is meant to run: it is up, or a boot starts it. One that is not is stopped on purpose, as
// far as anybody can tell.
func (s service) meant() bool { return s.up() || s.loaded() && len(s.Loaded.WantedBy) > 0 }

// lasting tells whether the unit is meant to go on: not one that does a thing and ends.
func (s service) lasting() bool { return s.loaded() && s.Loaded.Type != "oneshot" }
