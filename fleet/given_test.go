package fleet

import (
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

func TestOfCommand(t *testing.T) {
	for command, want := range map[string]struct {
		value string
		state int
	}{
		"/usr/bin/env KEY=1 server":                                {"1", set},
		"/usr/bin/env OTHER=KEY=1 server":                          {"", leaves},
		"/usr/bin/env server KEY=1":                                {"", leaves},
		"/usr/bin/env -u KEY server":                               {"", takenAway},
		"/usr/bin/env --unset=KEY server":                          {"", takenAway},
		"/usr/bin/env -u OTHER KEY=1 server":                       {"1", set},
		"/usr/bin/env -i A=1 server":                               {"", takenAway},
		"/usr/bin/env -i KEY=1 server":                             {"1", set},
		"/usr/bin/env A=1 /bin/sh -c|KEY=1 exec server":            {"1", set},
		"/bin/sh -c|export KEY=1; exec server":                     {"1", set},
		"/bin/bash -ec|A=2 KEY='1' server":                         {"1", set},
		"/bin/sh -c|exec env KEY=1 server":                         {"1", set},
		"/bin/sh -c|echo KEY=1; exec server":                       {"", leaves},
		"/bin/sh -c|test -e /soak && export KEY=1; exec server":    {"", leaves},
		"/bin/sh -c|if test -e /soak; then KEY=1 exec server; fi":  {"", leaves},
		"/bin/sh -c|exec server # KEY=1":                           {"", leaves},
		"/bin/sh /etc/script KEY=1":                                {"", leaves},
		"/opt/1bit serve --alias KEY=1":                            {"", leaves},
		"/bin/sh -c|unset KEY; KEY=1 server; unset KEY; exec serv": {"", leaves},
	} {
		words, script, _ := strings.Cut(command, "|")
		argv := strings.Fields(words)
		if script != "" {
			argv = append(argv, script)
		}
		if value, state := ofCommand(argv[0], argv, "KEY"); value != want.value || state != want.state {
			t.Errorf("%s: %q, %d, want %q, %d", command, value, state, want.value, want.state)
		}
	}
}

func TestGiven(t *testing.T) {
	for _, tt := range []struct {
		name, text string // of the unit
		loaded     systemd.Unit
		manager    map[string]string
		process    []string // what the server that runs has
		want       string   // value, what gives it and where
	}{
		{name: "nothing"},
		{name: "Environment=", text: "Environment=KEY=1\n", loaded: systemd.Unit{Environment: []string{"KEY=1"}}, want: "1 is set /u.service:2"},
		{name: "the command", text: "ExecStart=/usr/bin/env KEY=1 server\n", loaded: systemd.Unit{ExecStart: []systemd.Command{{Path: "/usr/bin/env", Argv: []string{"env", "KEY=1", "server"}}}}, want: "1 is set by ExecStart= /u.service:2"},
		{name: "the manager", manager: map[string]string{"KEY": "1"}, want: "1 is set in the environment that the manager gives"},
		{name: "the manager's, taken away", manager: map[string]string{"KEY": "1"}, loaded: systemd.Unit{UnsetEnvironment: []string{"KEY"}}},
		{name: "the manager's, taken away by the command", manager: map[string]string{"KEY": "1"}, loaded: systemd.Unit{ExecStart: []systemd.Command{{Path: "/usr/bin/env", Argv: []string{"env", "-u", "KEY", "server"}}}}},
		{name: "what runs", process: []string{"KEY=1"}, want: "1 is in the environment of the server that runs (process 7)"},
		{name: "what runs beside the server", process: []string{"A=1"}},
	} {
		f, err := systemd.ParseFile("/u.service", []byte("[Service]\n"+tt.text))
		if err != nil {
			t.Fatal(err)
		}
		v := &view{
			loaded: &tt.loaded, settings: systemd.Effective([]*systemd.File{f}, nil, nil), place: &place{inherited: tt.manager},
			live:  &Live{Main: &Process{PID: 6}, Child: &Process{PID: 7}},
			procs: []procInfo{{pid: 6, env: []string{"KEY=2"}}, {pid: 7, env: tt.process}},
		}
		g, ok := v.given("KEY")
		if got := strings.TrimSpace(g.Value + " " + g.By + " " + g.Where); ok != (tt.want != "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %v %q, want %q", tt.name, ok, got, tt.want)
		}
		if ok && (g.Remedy == "") != (g.Process != 0) {
			t.Errorf("%s: there is no remedy", tt.name)
		}
	}
}
