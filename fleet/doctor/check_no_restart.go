package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// noRestart looks for services that are meant to run and that systemd leaves dead.
func noRestart() Check {
	return Check{
		Name:   "no-restart",
		Reason: "With Restart=no, or one that leaves out how servers die, a server that dies at night is still dead in the morning.",
		Remedy: "Set Restart=always in [Service], with systemctl --user edit UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if !s.lasting() || !s.meant() {
					continue
				}
				if dies, ok := staysDead[s.Loaded.Restart]; ok {
					add(s.where, s.typed("set Restart=always in [Service], with: systemctl --user edit UNIT"), "systemd does not start it again %s: Restart=%s", dies, s.Loaded.Restart)
					continue
				}
				for _, value := range s.Settings.Values("Service", "RestartPreventExitStatus") {
					words := slices.DeleteFunc(strings.Fields(value.Value), func(word string) bool { return !slices.Contains(deaths, strings.TrimPrefix(word, "SIG")) })
					if len(words) > 0 {
						add(fmt.Sprintf("%s:%d", value.File, value.Number), s.typed("take them out, then: systemctl --user daemon-reload"),
							"%s: systemd does not start it again when it ends by %s, as a server that dies may: RestartPreventExitStatus=", s.where, strings.Join(words, ", "))
					}
				}
			}
			return err
		},
	}
}

// staysDead are the values of Restart= that leave out how a server dies by itself, and which those are (systemd.service(5)).
// on-abnormal is none: who writes it means that an exit is meant.
var staysDead = map[string]string{
	"no":          "when it dies",
	"on-success":  "when it fails, only when it ends well",
	"on-watchdog": "when it dies, only when its watchdog ends it",
	"on-abort":    "when it exits with an error or is killed for memory, only after a signal",
}

// deaths are how servers die: of an error, an abort, a crash, or killed for memory.
var deaths = []string{"1", "ABRT", "SEGV", "BUS", "KILL"}
