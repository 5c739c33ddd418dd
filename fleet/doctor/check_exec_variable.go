package doctor

import (
	"context"
	"fmt"
	"strings"
)

// execVariable looks for commands whose program is a variable.
func execVariable() Check {
	return Check{
		Name:   "exec-variable",
		Reason: "systemd replaces variables in the arguments of a command and never in its program: the service fails with status 203 at every start.",
		Remedy: "Start it through env: ExecStart=/usr/bin/env ${VARIABLE} …",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if !s.loaded() {
					continue
				}
				for _, c := range s.Settings.Start() {
					if strings.Contains(c.Path, "$") {
						add(fmt.Sprintf("%s:%d", c.File, c.Line), s.typed("write ExecStart=/usr/bin/env "+c.Path+" …, then: systemctl --user daemon-reload && 1bit pkg restart UNIT"),
							"%s: the program of ExecStart= is %s, which systemd takes as it stands", s.where, c.Path)
					}
				}
			}
			return err
		},
	}
}
