package systemd

// commandCases are about the command, and about how and whether a unit starts.
var commandCases = []unitCase{{
	name: "reset of a command",
	files: map[string]string{
		"usr/engine.service":                         "[Service]\nType=exec\nExecStart=/opt/eng/v1/bin/llama-server --port 9001\n",
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nExecStart=\nExecStart=/opt/eng/v2/bin/llama-server --port 9001\n",
		"etc/engine.service.d/override.conf":         "[Service]\nExecStart=\nExecStart=/opt/eng/v1/bin/llama-server --port 9001 --verbose\n",
	},
	want:   map[string]string{},
	start:  []string{"/opt/eng/v1/bin/llama-server --port 9001 --verbose"},
	loaded: []string{"/opt/eng/v1/bin/llama-server", "--port", "9001", "--verbose"},
	from:   "etc/engine.service.d/override.conf:3",
}, {
	name: "sections are exact",
	files: map[string]string{
		"usr/engine.service": "[Unit]\nEnvironment=UNIT=1\n[Service]\nExecStart=/bin/true\n",
		"etc/engine.service.d/10-limit.conf": "[Service]\nEnvironment=A=1\n[Service ]\nEnvironment=A=2\n[X-Fleet]\nRing=canary\n" +
			"[service]\nEnvironment=A=3\n[Unit]\nStartLimitBurst=4\n[Service]\nEnvironment=B=4\nenvironment=B=5\n",
	},
	want: map[string]string{"A": "1", "B": "4"},
	problems: []string{
		"10-limit.conf:4: Environment= ignored, there is no section [Service ]",
		"10-limit.conf:8: Environment= ignored, there is no section [service]",
	},
}, {
	name: "escaped instance",
	unit: `llm@gpu\x2d0.service`,
	files: map[string]string{
		"usr/llm@.service":                     "[Service]\nExecStart=/bin/echo i=%i I=%I p=%p n=%n f=%f\nEnvironment=WHO=unit \"I=%I\" F=%f i=%i\n",
		`etc/llm@gpu\x2d0.service.d/10-a.conf`: "[Service]\nEnvironment=WHO=escaped-dir\n",
		"etc/llm@gpu-0.service.d/10-a.conf":    "[Service]\nEnvironment=WHO=plain-dir\n",
	},
	want:   map[string]string{"WHO": "escaped-dir", "I": "gpu-0", "F": "/gpu-0", "i": `gpu\x2d0`},
	loaded: []string{"/bin/echo", `i=gpu\x2d0`, "I=gpu-0", "p=llm", `n=llm@gpu\x2d0.service`, "f=/gpu-0"},
}, {
	name: "plain instance",
	unit: "llm@gpu-0.service",
	files: map[string]string{
		"usr/llm@.service":                  "[Service]\nExecStart=/bin/echo i=%i I=%I p=%p n=%n f=%f\nEnvironment=WHO=unit \"I=%I\"\n",
		"etc/llm@gpu-0.service.d/10-a.conf": "[Service]\nEnvironment=WHO=plain-dir\n",
	},
	want:   map[string]string{"WHO": "plain-dir", "I": "gpu/0"},
	loaded: []string{"/bin/echo", "i=gpu-0", "I=gpu/0", "p=llm", "n=llm@gpu-0.service", "f=/gpu/0"},
}, {
	name: "one command too many",
	files: map[string]string{
		"usr/engine.service":                         "[Service]\nType=exec\nExecStart=/opt/eng/v1/bin/llama-server\n",
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nExecStart=/opt/eng/v2/bin/llama-server\n",
	},
	start:    []string{"/opt/eng/v1/bin/llama-server", "/opt/eng/v2/bin/llama-server"},
	refused:  "etc/engine.service.d/50-engine-switch.conf:2: the unit does not start, there is more than one ExecStart=",
	problems: []string{"50-engine-switch.conf:2: the unit does not start"},
	state:    "bad-setting",
}, {
	name: "an empty unit file masks",
	files: map[string]string{
		"usr/engine.service": plainUnit,
		"etc/engine.service": "",
	},
	refused:  "etc/engine.service: the unit does not start, an empty unit file masks it",
	problems: []string{"usr/engine.service: hidden by ", "etc/engine.service: the unit does not start"},
	state:    "masked",
}, {
	name: "a per cent sign in the command of a unit file",
	files: map[string]string{
		"usr/engine.service":          "[Service]\nExecStart=/bin/echo rel%3A7\nEnvironment=A=1\n",
		"etc/engine.service.d/a.conf": "[Service]\nEnvironment=B=2\n",
	},
	refused:  "usr/engine.service:2: the unit does not start, bad ExecStart=, a % that should be doubled: rel%3A7",
	problems: []string{"engine.service:2: the unit does not start"},
	state:    "bad-setting",
}, {
	name: "a per cent sign in the command of a drop-in",
	files: map[string]string{
		"usr/engine.service":          plainUnit,
		"etc/engine.service.d/a.conf": "[Service]\nEnvironment=A=1\nExecStart=-/bin/echo rel%3A7\nEnvironment=A=2\nExecStop=/bin/echo rel%3A7\nEnvironment=A=3\n",
		"etc/engine.service.d/b.conf": "[Service]\nEnvironment=B=2\n",
	},
	want:     map[string]string{"WHO": "unit", "A": "2", "B": "2"},
	loaded:   []string{"/bin/true"},
	problems: []string{"a.conf:3: ExecStart= ignored", "a.conf:5: ignored with the rest of the file"},
}, {
	name: "keys in the wrong section",
	files: map[string]string{
		"usr/engine.service": "[Unit]\nStartLimitBurst=9\n[Service]\nExecStart=/bin/true\nRestart=always\n",
		"etc/engine.service.d/10-limit.conf": "[Service]\nStartLimitIntervalSec=0\nStartLimitInterval=7\nRestartSec=2\n[Service ]\n" +
			"RestartSec=30\n[X-Fleet]\nRing=canary\n[service]\nRestartSec=40\n[Unit]\nStartLimitBurst=4\n[Service]\n" +
			"RestartSec=5\nRestartSec=abc\nRestart_Sec=6\n",
	},
	loaded: []string{"/bin/true"},
	last: map[string]string{
		"Service/RestartSec":         "10-limit.conf:14 RestartSec=5 hides 10-limit.conf:4",
		"Unit/StartLimitIntervalSec": "10-limit.conf:3 StartLimitInterval=7",
		"Unit/StartLimitBurst":       "10-limit.conf:12 StartLimitBurst=4 hides engine.service:2",
		"Service/Restart":            "engine.service:5 Restart=always",
		"Service/Type":               "",
	},
	problems: []string{
		"10-limit.conf:2: StartLimitIntervalSec= ignored, it belongs into [Unit]",
		"10-limit.conf:6: RestartSec= ignored, there is no section [Service ]",
		"10-limit.conf:10: RestartSec= ignored, there is no section [service]",
		"10-limit.conf:15: ignored, not a value of RestartSec=: abc",
	},
	properties: map[string]any{"RestartUSec": uint64(5e6), "StartLimitIntervalUSec": uint64(7e6), "StartLimitBurst": uint32(4), "Restart": "always"},
}, {
	name: "the path of a program that was gone",
	files: map[string]string{
		"usr/engine.service":                         plainUnit,
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nExecStart=\nExecStart=/opt/eng/v1/bin/llama-server (deleted) --port 9001\n",
	},
	loaded:   []string{"/opt/eng/v1/bin/llama-server", "(deleted)", "--port", "9001"},
	from:     "etc/engine.service.d/50-engine-switch.conf:3",
	problems: []string{`50-engine-switch.conf:3: "(deleted)" is a word of the command`},
}, {
	name: "a drop-in that changes the type",
	files: map[string]string{
		"usr/engine.service": "[Service]\nType=exec\nExecStart=/opt/eng/v1/bin/llama-server\n",
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nType=notify\nNotifyAccess=main\nExecStart=\n" +
			"ExecStart=/bin/sh -c 'exec /opt/eng/v2/bin/llama-server --port 9001'\n",
	},
	loaded: []string{"/bin/sh", "-c", "exec /opt/eng/v2/bin/llama-server --port 9001"},
	last: map[string]string{
		"Service/Type":         "50-engine-switch.conf:2 Type=notify hides engine.service:2",
		"Service/NotifyAccess": "50-engine-switch.conf:3 NotifyAccess=main",
	},
	properties: map[string]any{"Type": "notify", "NotifyAccess": "main"},
}, {
	name: "several commands in one line",
	files: map[string]string{
		"usr/engine.service": "[Service]\nType=oneshot\nExecStart=/bin/echo a ; -/bin/echo b \\; c ;\nExecStart=@/bin/echo name \\q $A\n",
	},
	commands: [][]string{{"/bin/echo", "a"}, {"/bin/echo", "b", ";", "c"}, {"name", `\q`, "$A"}},
}, {
	name: "programs without a path",
	files: map[string]string{
		"usr/engine.service":          "[Service]\nExecStart=true x\n",
		"etc/engine.service.d/a.conf": "[Service]\nExecStart=\nExecStart=:echo $A ${B}\n",
	},
	loaded: []string{"echo", "$A", "${B}"},
}}
