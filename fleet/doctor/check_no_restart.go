package doctor

import "context"

// noRestart looks for services that are meant to run and that systemd leaves dead.
func noRestart() Check {
	return Check{
		Name:   "no-restart",
		Reason: "With Restart=no a server that dies at night is still dead in the morning.",
		Remedy: "Set Restart=always in [Service], with systemctl --user edit UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if s.lasting() && s.meant() && s.Loaded.Restart == "no" {
					add(s.where, s.typed("set Restart=always in [Service], with: systemctl --user edit UNIT"), "systemd does not start it again when it dies: Restart=no")
				}
			}
			return err
		},
	}
}
