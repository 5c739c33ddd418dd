package doctor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// second is a unit that a plant has beside the clean host's own, and it starts a package's server, too.
const second = "second.service"

// serverOf is the line that names a package's server.
func serverOf(id string) string {
	return "Environment=ONEBIT_LLAMA_SERVER=%h/.local/share/1bit-hrx-" + id + "/" + serverPath + "\n"
}

// fixed says that a package carries a fix, which a variable turns off.
func fixed(m *packager.Manifest) {
	yes := true
	m.Fixes = []packager.Fix{{
		ID: "engine#123", Title: "decode-split race", Component: "engine", Commits: []string{strings.Repeat("ab", 20)}, Carried: &yes, How: "an ancestor",
		Off: "ONEBIT_HRX_DECODE_SPLIT=0",
	}}
}

// unit writes a unit beside the clean host's own, which a boot would start, and loads it.
func (g *garden) unit(text string, more ...string) {
	g.Helper()
	path := filepath.Join(g.units, second)
	g.write(path, "[Unit]\nDescription=another model\n"+strings.Join(more, "")+"[Service]\nRestart=always\n"+text+"[Install]\nWantedBy=default.target\n")
	g.link(path, filepath.Join(g.units, "default.target.wants", second))
	g.reload()
}

// started starts the unit and waits for a state.
func (g *garden) started(state string) {
	g.Helper()
	g.later(func() { g.asUser("sh", "-c", "systemctl --user stop "+second+" && systemctl --user reset-failed") })
	g.asUser("systemctl", "--user", "start", "--no-block", second)
	g.eventually(second+" is "+state, func() bool { return g.is(second, state) })
	if state == "active running" { // systemd says so before the program has begun; the server of a package ends up as sleep(1)
		g.eventually("the server of "+second+" has begun", func() bool {
			out := g.asUser("sh", "-c", "cat /proc/$(systemctl --user show --property=MainPID --value "+second+")/comm || true")
			return strings.TrimSpace(out) == "sleep"
		})
	}
}

// is tells whether a unit's ActiveState, SubState and NRestarts are these.
func (g *garden) is(unit, state string) bool {
	out := g.asUser("systemctl", "--user", "show", "-p", "ActiveState,SubState,NRestarts", "--value", unit)
	words := strings.Fields(out)
	for want := range strings.FieldsSeq(state) {
		found := false
		for _, word := range words {
			found = found || word == want
		}
		if !found {
			return false
		}
	}
	return true
}

// servicePlants are the problems of services and packages.
func servicePlants() []plant {
	const own = "/llm.service.d/"
	conf := func(name, text string) func(g *garden, q *question) {
		return func(g *garden, _ *question) { g.dropIn(name, text) }
	}
	return []plant{
		{
			name: "a service that is down", check: "failing", where: second, what: "it does not stay up",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "ExecStart=/bin/false\nRestartSec=1h\n")
				g.started("activating auto-restart")
			},
		},
		{
			name: "a running service without a file", check: "unit-gone", where: second, what: "its unit file is gone",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
				g.started("active running")
				g.remove(filepath.Join(g.units, second))
				g.reload()
			},
		},
		{
			name: "a mask", check: "masked", where: unit, what: "/dev/null",
			plant: func(g *garden, _ *question) {
				g.link("/dev/null", filepath.Join(g.units, unit))
				g.reload()
			},
		},
		{
			name: "a server that died once", check: "restarts", where: unit, what: "started it again once",
			plant: func(g *garden, _ *question) {
				g.restarts = true
				g.asUser("systemctl", "--user", "kill", "-s", "KILL", unit)
				g.eventually("it was started again", func() bool { return g.is(unit, "active running 1") })
			},
		},
		{
			name: "a process that was killed for memory", check: "oom", where: unit, what: "2 of its processes were killed",
			plant: func(g *garden, q *question) {
				group := strings.TrimSpace(g.asUser("systemctl", "--user", "show", "-p", "ControlGroup", "--value", unit))
				q.Root = g.recorded(map[string]string{filepath.Join("sys/fs/cgroup", group, "memory.events"): "low 0\noom 2\noom_kill 2\n"})
			},
		},
		{
			name: "a start limit that was hit", check: "start-limit", where: second, what: "too often in a row", also: []string{"failing", "restarts"},
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001")+"ExecStart=/bin/false\nRestartSec=1ms\n", "StartLimitBurst=2\n")
				g.started("failed")
			},
		},
		{
			name: "a tight start limit", check: "start-limit", where: unit, what: "3 times within 2m0s",
			plant: conf("10-limit.conf", "[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=120\n"),
		},
		{name: "no restart", check: "no-restart", where: unit, what: "Restart=no", plant: conf("10-restart.conf", "[Service]\nRestart=no\n")},
		{name: "a restart after success alone", check: "no-restart", where: unit, what: "Restart=on-success", plant: conf("10-restart.conf", "[Service]\nRestart=on-success\n")},
		{
			name: "no restart after an abort", check: "no-restart", where: own + "10-restart.conf:2", what: "SIGABRT",
			plant: conf("10-restart.conf", "[Service]\nRestartPreventExitStatus=2 SIGTERM SIGABRT\n"),
		},
		{
			name: "too little time to load", check: "notify-timeout", where: unit, what: "1m30s to load",
			plant: conf("10-notify.conf", "[Service]\nType=notify\nTimeoutStartSec=90\n"),
		},
		{
			name: "wanted by a target of the system's", check: "wanted-by", where: unit + ":", what: "WantedBy=multi-user.target",
			plant: func(g *garden, _ *question) {
				g.write(filepath.Join(g.units, unit), strings.ReplaceAll(unitText, "default.target", "multi-user.target"))
				g.reload()
			},
		},
		{
			name: "wanted by nothing", check: "wanted-by", where: unit, what: "nothing starts it at boot",
			plant: func(g *garden, _ *question) {
				g.asUser("systemctl", "--user", "disable", unit)
				g.later(func() { g.asUser("systemctl", "--user", "enable", unit) })
			},
		},
		{
			name: "two services on one port", check: "port", where: second, what: "port 18095, and so does " + unit,
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port=18095\n")
			},
		},
		{
			name: "a line before any section", check: "unit-file", where: own + "10-torn.conf:1", what: "before the first section",
			plant: conf("10-torn.conf", "Environment=A=1\n"),
		},
		{
			name: "a key that nobody knows", check: "unit-file", where: own + "10-slip.conf:2", what: "Restrt=",
			plant: conf("10-slip.conf", "[Service]\nRestrt=no\n"),
		},
		{
			name: "a drop-in that leads nowhere", check: "unit-file", where: own + "10-lost.conf", what: unit,
			plant: func(g *garden, _ *question) {
				g.link("/nowhere/lost.conf", filepath.Join(g.units, own, "10-lost.conf"))
				g.reload()
			},
		},
		{
			name: "an empty file that hides another", check: "unit-file", where: "50-vendor.conf", what: "hidden",
			plant: func(g *garden, _ *question) {
				g.write(filepath.Join(g.data, "systemd/user", unit+".d/50-vendor.conf"), "[Service]\nNice=1\n")
				g.dropIn("50-vendor.conf", "")
			},
		},
		{
			name: "a key in the wrong section", check: "misplaced-key", where: own + "10-limit.conf:2", what: "belongs into [Unit]",
			plant: conf("10-limit.conf", "[Service]\nStartLimitIntervalSec=0\n"),
		},
		{
			name: "a section that nobody knows", check: "misplaced-key", where: own + "10-service.conf:2", what: "[service]",
			plant: conf("10-service.conf", "[service]\nEnvironment=A=1\n"),
		},
		{
			name: "a value with a blank", check: "quoting", where: own + "10-blank.conf:2", what: "not a valid assignment",
			plant: conf("10-blank.conf", "[Service]\nEnvironment=A=one two\n"),
		},
		{
			name: "a percent sign", check: "quoting", where: own + "10-percent.conf:2", what: "doubled",
			plant: conf("10-percent.conf", "[Service]\nEnvironment=A=p%40ss\n"),
		},
		{
			name: "a home folder for a shell", check: "quoting", where: own + "10-home.conf:2", what: "LLAMA_CACHE begins with ~",
			plant: conf("10-home.conf", "[Service]\nEnvironment=LLAMA_CACHE=~/cache\n"),
		},
		{
			name: "a program that is a variable", check: "exec-variable", where: second + ":", what: "${ONEBIT_LLAMA_SERVER}",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "ExecStart=${ONEBIT_LLAMA_SERVER} --port 1\n")
			},
		},
		{
			name: "a package that the unit hides", check: "sandbox", where: own + "10-hide.conf:2", what: "hides the package",
			plant: conf("10-hide.conf", "[Service]\nProtectHome=tmpfs\n"),
		},
		{
			name: "a package that may not run", check: "sandbox", where: own + "10-hide.conf:2", what: "NoExecPaths=/home hides",
			plant: conf("10-hide.conf", "[Service]\nNoExecPaths=-/home\n"),
		},
		{
			name: "a log that is thrown away", check: "journal", where: own + "10-log.conf:2", what: "StandardOutput=null throws away",
			plant: conf("10-log.conf", "[Service]\nStandardOutput=null\n"),
		},
		{
			name: "a log of errors alone", check: "journal", where: own + "10-log.conf:2", what: "LogLevelMax=err throws away",
			plant: conf("10-log.conf", "[Service]\nLogLevelMax=err\n"),
		},
		{
			name: "a GPU that the unit hides", check: "sandbox", where: second + ":", what: "hides the devices",
			plant: func(g *garden, _ *question) {
				g.install("f00d001", func(m *packager.Manifest) { m.GPUTargets = []string{"gfx1151"} })
				g.unit(serverOf("f00d001") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\nPrivateDevices=yes\n")
			},
		},
		{
			name: "NaN go on", check: "nan-continue", where: own + "10-nan.conf:2", what: "soaks only",
			plant: conf("10-nan.conf", "[Service]\nEnvironment=GGML_HRX_NAN_CONTINUE=1\n"),
		},
		{
			name: "NaN go on, by the command", check: "nan-continue", where: second + ":", what: "by ExecStart=",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "ExecStart=/usr/bin/env GGML_HRX_NAN_CONTINUE=1 ${ONEBIT_LLAMA_SERVER} --port 1\n")
			},
		},
		{
			name: "NaN go on, by the manager", check: "nan-continue", where: unit, what: "the manager gives",
			plant: func(g *garden, _ *question) {
				g.later(func() { g.asUser("systemctl", "--user", "unset-environment", "GGML_HRX_NAN_CONTINUE") })
				g.asUser("systemctl", "--user", "set-environment", "GGML_HRX_NAN_CONTINUE=1")
			},
		},
		{
			name: "NaN go on, in what runs", check: "nan-continue", where: unit, what: "the server that runs",
			plant: func(g *garden, _ *question) {
				g.asUser("systemctl", "--user", "set-environment", "GGML_HRX_NAN_CONTINUE=1")
				g.restart()
				g.asUser("systemctl", "--user", "unset-environment", "GGML_HRX_NAN_CONTINUE")
			},
		},
		{
			name: "a fix that is turned off", check: "fix-off", where: second + ":", what: "engine#123 (decode-split race)", also: []string{"newer-fix"},
			plant: func(g *garden, _ *question) {
				g.install("f00d001", fixed)
				g.unit(serverOf("f00d001") + "Environment=ONEBIT_HRX_DECODE_SPLIT=0\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
			},
		},
		{
			name: "a drop-in that is not loaded", check: "not-loaded", where: own + "10-new.conf", what: "not loaded",
			plant: func(g *garden, _ *question) {
				g.write(filepath.Join(g.units, own, "10-new.conf"), "[Service]\nNice=1\n")
			},
		},
		{
			name: "another package that is not loaded", check: "not-loaded", where: unit, what: "hrx-bbb0002 and the manager has loaded hrx-aaa0001",
			also: []string{"overridden"},
			plant: func(g *garden, _ *question) {
				g.write(filepath.Join(g.units, own, "zzz.conf"), "[Service]\n"+serverOf("bbb0002"))
			},
		},
		{
			name: "a line that wins", check: "overridden", where: own + "zzz.conf:2", what: "1bit-hrx-bbb0002", also: []string{"restart-pending"},
			plant: conf("zzz.conf", "[Service]\n"+serverOf("bbb0002")),
		},
		{
			name: "a line that loses", check: "shadowed", where: own + "10-old.conf:2", what: "and other lines win over it",
			plant: conf("10-old.conf", "[Service]\n"+serverOf("bbb0002")),
		},
		{
			name: "an edit of our file", check: "own-file", where: unit, what: "zz-1bit.conf",
			plant: func(g *garden, _ *question) {
				g.add(filepath.Join(g.units, own, "zz-1bit.conf"), "[Service]\nNice=1\n")
				g.reload()
			},
		},
		{
			name: "an adopted line that was edited", check: "adoption-drift", where: unit, what: "was edited or removed",
			plant: conf("hrx.conf", "[Service]\n"+serverOf("bbb0002")),
		},
		{
			name: "a command that names a package", check: "bound-command", where: second, what: "names a package itself",
			plant: func(g *garden, _ *question) {
				g.unit("ExecStart=%h/.local/share/1bit-hrx-aaa0001/" + serverPath + " --port 1\n")
			},
		},
		{
			name: "a server of no package", check: "stray", where: second, what: "lies in no package",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "Environment=LD_LIBRARY_PATH=%h/.local/share/1bit-hrx-aaa0001/hrx/llama\n" +
					"Environment=ONEBIT_LLAMA_SERVER=/usr/bin/llama-server\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
			},
		},
		{
			name: "a restart that is pending", check: "restart-pending", where: unit, what: "Restart=always",
			plant: func(g *garden, _ *question) { g.switchTo("hrx-bbb0002") },
		},
		{
			name: "variables of two packages", check: "mixed-package", where: second, what: "hrx-aaa0001, hrx-bbb0002",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("aaa0001") + "Environment=LD_LIBRARY_PATH=%h/.local/share/1bit-hrx-bbb0002/hrx/llama\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
			},
		},
		{
			name: "a package that is gone under its process", check: "package-gone", where: second, what: "no longer there", also: []string{"package-missing"},
			plant: func(g *garden, _ *question) {
				g.install("f00d001")
				g.unit(serverOf("f00d001") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
				g.started("active running")
				folder := g.host.Outside(filepath.Join(g.data, "1bit-hrx-f00d001"))
				if err := os.Rename(folder, folder+".away"); err != nil {
					g.Fatal(err)
				}
				g.later(func() {
					if err := os.Rename(folder+".away", folder); err != nil {
						g.Error(err)
					}
				})
			},
		},
		{
			name: "a package behind a link", check: "package-missing", where: second, what: "is a link to",
			plant: func(g *garden, _ *question) {
				g.install("f00d001")
				folder := g.host.Outside(filepath.Join(g.data, "1bit-hrx-f00d001"))
				aside := filepath.Join(g.data, "aside")
				if err := os.Rename(folder, g.host.Outside(aside)); err != nil {
					g.Fatal(err)
				}
				if err := os.Symlink(aside, folder); err != nil {
					g.Fatal(err)
				}
				g.later(func() {
					if err := errors.Join(os.Remove(folder), os.Rename(g.host.Outside(aside), folder)); err != nil {
						g.Error(err)
					}
				})
				g.unit(serverOf("f00d001") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
				g.started("active running")
			},
		},
		{
			name: "a package that was never there", check: "package-missing", where: second, what: "1bit-hrx-f00d404 is not there",
			plant: func(g *garden, _ *question) {
				g.unit(serverOf("f00d404") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
			},
		},
		{
			name: "a package that was touched", check: "package-state", where: "1bit-hrx-bbb0002", what: "touched",
			plant: func(g *garden, _ *question) { g.chmod(filepath.Join(g.data, "1bit-hrx-bbb0002/1bit"), 0o700) },
		},
		{
			name: "a path that a package wants", check: "requirement", where: "1bit-hrx-f00d001", what: "/opt/rocm-therock",
			plant: func(g *garden, _ *question) {
				g.install("f00d001", func(m *packager.Manifest) {
					m.Requires = []packager.Requirement{{Kind: packager.RequirePath, Name: "/opt/rocm-therock"}}
				})
				g.unit(serverOf("f00d001") + "ExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER}\n")
			},
		},
		{
			name: "a fix that is installed and not taken", check: "newer-fix", where: unit, what: "engine#123 (decode-split race)",
			plant: func(g *garden, _ *question) { g.install("f00d001", fixed) },
		},
		{
			name: "a hold that has expired", check: "hold", where: unit, what: "expired",
			plant: func(g *garden, _ *question) {
				g.write(filepath.Join(g.units, own, "zz-1bit.hold"),
					`{"reason": "a soak", "by": "ai", "at": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}`)
			},
		},
		{
			name: "a hold that was forgotten", check: "hold", where: unit, what: "without an end: a soak",
			plant: func(g *garden, q *question) {
				g.user.ask(g, question{Do: "hold", Args: []string{unit, "a soak"}})
				g.later(func() { os.Remove(g.host.Outside(filepath.Join(g.units, own, "zz-1bit.hold"))) })
				q.Now = time.Now().AddDate(0, 2, 0)
			},
		},
		{
			name: "a proposal that cannot be read", check: "proposal", where: unit, what: "proposals",
			plant: func(g *garden, _ *question) { g.write(filepath.Join(g.state, "proposals", unit+".json"), "{") },
		},
		{
			name: "an engine of no package", check: "lookalike", where: second, what: "/usr/bin/llama-server",
			plant: func(g *garden, _ *question) { g.unit("ExecStart=/usr/bin/llama-server --port 1\n") },
		},
	}
}
