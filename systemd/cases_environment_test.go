package systemd

import "strings"

const plainUnit = "[Service]\nExecStart=/bin/true\nEnvironment=WHO=unit\n"

// environmentCases are about what a process gets in its environment.
var environmentCases = []unitCase{{
	name: "comments inside continuations",
	files: map[string]string{
		"usr/engine.service": "[Unit]\nDescription=engine\n[Service]\nType=exec\n" +
			"# old line kept for rollback: /opt/eng/a/bin/llama-server \\\n" +
			"ExecStart=/opt/eng/b/bin/llama-server \\\n    --port 9001 \\\n# --ctx-size 4096 \\\n    ; --threads 4 \\\n" +
			"    --alias small-model \\\n\nEnvironment=A=1 \\\n; B=2 \\\n  C=3\n",
		"etc/engine.service.d/20-sh.conf": "[Service]\n; reviewed \\\nExecStop=/bin/sh -c 'case x in \\\n    y) echo no \\\n    ;; \\\n    *) echo yes ;; esac'\n",
	},
	want:     map[string]string{"A": "1", "C": "3"},
	start:    []string{"/opt/eng/b/bin/llama-server      --port 9001      --alias small-model"},
	loaded:   []string{"/opt/eng/b/bin/llama-server", "--port", "9001", "--alias", "small-model"},
	problems: []string{"20-sh.conf:5: a comment, although it stands between quotes: ;; \\"},
}, {
	name: "quoting",
	files: map[string]string{
		"usr/engine.service": "[Service]\nExecStart=/bin/true\nEnvironment=KEEP=old\n",
		"etc/engine.service.d/10-env.conf": `[Service]
Environment= A='one' "B=two words" 'C=has"dq' D=x\x41y E=
Environment = F=1,G=2
Environment=H="p q" I=$HOME J=a;b
Environment=my.key=1 OK1=1
Environment=export K=2
Environment="L=trailing quote" M=3"
Environment="N=ab"cd O='x'y'z'
`,
	},
	want: map[string]string{"KEEP": "old", "A": "one", "B": "two words", "C": `has"dq`, "D": "xAy", "E": "",
		"F": "1,G=2", "H": "p q", "I": "$HOME", "J": "a;b", "OK1": "1", "K": "2", "L": "trailing quote", "N": "abcd", "O": "xyz"},
	problems: []string{
		"10-env.conf:5: ignored, not a valid assignment: my.key=1",
		"10-env.conf:6: ignored, not a valid assignment: export",
		"10-env.conf:7: from here on ignored, a quote that is not closed",
	},
}, {
	name: "percent signs",
	files: map[string]string{
		"usr/engine.service": "[Service]\nExecStart=/bin/true\n",
		"etc/engine.service.d/10-proxy.conf": `[Service]
Environment=BEFORE=1 "HTTPS_PROXY=http://ops:p%40ss@proxy.test:3128" AFTER=1
Environment=NAME=%n LIT=100%% TAIL=50%
Environment=LATER=1
`,
	},
	want:     map[string]string{"BEFORE": "1", "AFTER": "1", "NAME": "engine.service", "LIT": "100%", "TAIL": "50%", "LATER": "1"},
	problems: []string{"10-proxy.conf:2: ignored, a % that should be doubled: HTTPS_PROXY="},
}, {
	name: "order over folders",
	files: map[string]string{
		"etc/service.d/10-admin.conf":          "[Service]\nEnvironment=SAME=service-d\n",
		"etc/service.d/99-all.conf":            "[Service]\nEnvironment=WHO=type-99 TYPE=etc99\n",
		"etc/engine.service.d/Z-upper.conf":    "[Service]\nEnvironment=CASE=upper\n",
		"etc/engine.service.d/a-lower.conf":    "[Service]\nEnvironment=CASE=lower\n",
		"etc/engine.service.d/10-admin.conf":   "[Service]\nEnvironment=WHO=etc-10\n",
		"etc/engine.service.d/10-n.conf":       "[Service]\nEnvironment=NUM=10\n",
		"etc/engine.service.d/9-n.conf":        "[Service]\nEnvironment=NUM=9\n",
		"etc/engine.service.d/98-x.conf.bak":   "[Service]\nEnvironment=WHO=bak\n",
		"etc/engine.service.d/.95-hidden.conf": "[Service]\nEnvironment=WHO=hidden\n",
		"etc/engine.service.d/97-x.conf~":      "[Service]\nEnvironment=WHO=tilde\n",
		"usr/engine.service":                   plainUnit,
		"usr/engine.service.d/60-pkg.conf":     "[Service]\nEnvironment=WHO=usr-60\n",
		"run/engine.service.d/60-pkg.conf":     "[Service]\nEnvironment=WHO=run-60 SAMENAME=run\n",
	},
	want: map[string]string{"WHO": "type-99", "TYPE": "etc99", "CASE": "lower", "NUM": "9", "SAMENAME": "run"},
	above: map[string]string{"WHO etc/engine.service.d/10-admin.conf": "run/engine.service.d/60-pkg.conf:2 etc/service.d/99-all.conf:2",
		"NUM etc/engine.service.d/9-n.conf": ""},
}, {
	name: "a link that leads nowhere and a folder hide",
	v252: true,
	files: map[string]string{
		"usr/engine.service":                    plainUnit,
		"etc/engine.service.d/61-dangling.conf": "-> /nowhere/at.conf",
		"usr/engine.service.d/61-dangling.conf": "[Service]\nEnvironment=HIDDEN=1\n",
		"run/engine.service.d/62-dir.conf/file": "",
		"usr/engine.service.d/62-dir.conf":      "[Service]\nEnvironment=HIDDEN=2\n",
	},
	want: map[string]string{"WHO": "unit"},
	problems: []string{
		"etc/engine.service.d/61-dangling.conf: left out: ",
		"usr/engine.service.d/61-dangling.conf: hidden by ",
		"run/engine.service.d/62-dir.conf: left out: ",
		"usr/engine.service.d/62-dir.conf: hidden by ",
	},
}, {
	name: "dash prefixes",
	unit: "one-two-three.service",
	files: map[string]string{
		"usr/one-two-three.service":             "[Service]\nExecStart=/bin/true\n",
		"usr/one-two-three.service.d/50-a.conf": "[Service]\nEnvironment=A=own\n",
		"etc/one-two-.service.d/60-b.conf":      "[Service]\nEnvironment=A=two B=two\n",
		"run/one-.service.d/60-b.conf":          "[Service]\nEnvironment=B=hidden\n",
		"usr/one-.service.d/70-c.conf":          "[Service]\nEnvironment=C=one\n",
		"etc/one-two.service.d/99-not.conf":     "[Service]\nEnvironment=C=not-a-prefix\n",
	},
	want: map[string]string{"A": "two", "B": "two", "C": "one"},
}, {
	name: "empty file and link to null hide",
	files: map[string]string{
		"usr/engine.service":                  plainUnit,
		"usr/engine.service.d/50-vendor.conf": "[Service]\nEnvironment=VENDOR=1 LD_LIBRARY_PATH=/opt/eng/v/lib\n",
		"usr/engine.service.d/60-two.conf":    "[Service]\nEnvironment=TWO=1\n",
		"etc/engine.service.d/50-vendor.conf": "",
		"etc/engine.service.d/60-two.conf":    "-> /dev/null",
	},
	want: map[string]string{"WHO": "unit"},
	problems: []string{
		"usr/engine.service.d/50-vendor.conf: hidden by ",
		"usr/engine.service.d/60-two.conf: hidden by ",
	},
}, {
	name: "linked folder and linked file",
	v252: true,
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"files/eng.d/50-eng.conf":          "[Service]\nEnvironment=WHO=dotfiles\n",
		"files/one.conf":                   "[Service]\nEnvironment=ONE=1\n",
		"etc/engine.service.d":             "-> ../files/eng.d",
		"run/engine.service.d/60-one.conf": "-> FILES/one.conf",
	},
	want:     map[string]string{"WHO": "unit", "ONE": "1"},
	problems: []string{"etc/engine.service.d: not read, the folder is a symbolic link"},
}, {
	name: "byte order mark and line ends",
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"etc/engine.service.d/10-bom.conf": "\ufeff[Service]\nEnvironment=BOM=1\n",
		"etc/engine.service.d/20-crlf.conf": "[Service]\r\nEnvironment=CRLF=1\r\nExecStart=\r\nExecStart=/bin/echo a \\\r\n" +
			"  b\r\n",
		"etc/engine.service.d/30-cr.conf":  "[Service]\rEnvironment=LONECR=1\rEnvironment=LONECR2=2",
		"etc/engine.service.d/40-nul.conf": "[Service]\nEnvironment=NUL1=1\x00Environment=NUL2=2\n",
		"etc/engine.service.d/50-tab.conf": "  [Service]  \n\tEnvironment =\tTAB=1  \nEnvironment=NOEOL=1",
	},
	want: map[string]string{"WHO": "unit", "BOM": "1", "CRLF": "1", "LONECR": "1", "LONECR2": "2", "NUL1": "1",
		"NUL2": "2", "TAB": "1", "NOEOL": "1"},
	start:  []string{"/bin/echo a    b"},
	loaded: []string{"/bin/echo", "a", "b"},
}, {
	name: "a line of 70 KiB",
	files: map[string]string{
		"usr/engine.service": plainUnit,
		"etc/engine.service.d/10-long.conf": "[Service]\nEnvironment=BEFORE=1\nEnvironment=BIG=" +
			strings.Repeat("x", 70_000) + "\nEnvironment=AFTER=1\n",
	},
	want: map[string]string{"WHO": "unit", "BEFORE": "1", "BIG": strings.Repeat("x", 70_000), "AFTER": "1"},
}, {
	name: "a line over a MiB",
	files: map[string]string{
		"usr/engine.service": plainUnit,
		"etc/engine.service.d/10-long.conf": "[Service]\nEnvironment=BEFORE=1\nEnvironment=BIG=" +
			strings.Repeat("x", 1<<20+10) + "\nEnvironment=AFTER=1\n",
		"etc/engine.service.d/20-next.conf": "[Service]\nEnvironment=NEXT=1\n",
	},
	want:     map[string]string{"WHO": "unit", "BEFORE": "1", "NEXT": "1"},
	problems: []string{"10-long.conf:3: line too long"},
}, {
	name: "not UTF-8",
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"etc/engine.service.d/10-bin.conf": "[Service]\nEnvironment=BEFORE=1\nEnvironment=BIN=\xff\nEnvironment=AFTER=1\n",
	},
	want:     map[string]string{"WHO": "unit", "BEFORE": "1"},
	problems: []string{"10-bin.conf:3: not UTF-8"},
}, {
	name: "torn write",
	files: map[string]string{
		"usr/engine.service":               plainUnit,
		"etc/engine.service.d/10-nul.conf": strings.Repeat("\x00", 4096),
		"etc/engine.service.d/20-cut.conf": "Environment=NO_SECTION=1\n[Service]\nEnvironment=A=1\nEnvironment=\"B=",
	},
	want:     map[string]string{"WHO": "unit", "A": "1"},
	problems: []string{"20-cut.conf:1: assignment before the first section", "20-cut.conf:4: from here on ignored"},
}, {
	name: "reset of the environment",
	files: map[string]string{
		"usr/engine.service": "[Service]\nType=exec\nExecStart=/opt/eng/v1/bin/llama-server\nEnvironment=LD_LIBRARY_PATH=/opt/eng/v1/lib\n",
		"etc/engine.service.d/50-engine-switch.conf": "[Service]\nExecStart=\nExecStart=/opt/eng/v2/bin/llama-server\n" +
			"Environment=LD_LIBRARY_PATH=/opt/eng/v2/lib\n",
		"etc/engine.service.d/70-site.conf": "[Service]\nEnvironment=\nEnvironment=HIP_VISIBLE_DEVICES=0\n",
	},
	want:  map[string]string{"HIP_VISIBLE_DEVICES": "0"},
	start: []string{"/opt/eng/v2/bin/llama-server"},
	above: map[string]string{"LD_LIBRARY_PATH etc/engine.service.d/50-engine-switch.conf": "etc/engine.service.d/70-site.conf:2"},
	from:  "etc/engine.service.d/50-engine-switch.conf:3",
}, {
	name: "environment files",
	files: map[string]string{
		"usr/engine.service":               "[Service]\nExecStart=/bin/true\nEnvironmentFile=FILES/one.env\nEnvironmentFile=-FILES/none.env\n",
		"etc/engine.service.d/zz.conf":     "[Service]\nEnvironment=A=drop-in B=drop-in C=drop-in\n",
		"etc/engine.service.d/zzz.conf":    "[Service]\nEnvironmentFile=FILES/t*.env\nUnsetEnvironment=C D=4 E=other\n",
		"files/one.env":                    "A=one\nD=4\nE=5 # no comment\n",
		"files/two.env":                    "B = \"two\" 'words' x\nF='a\nb'\nG=a\\\nb\nexport H=1\n# I=1\nJ=\"\\x \\$ \\\"\"\n",
		"files/.tree.env":                  "A=hidden\n",
		"run/engine.service.d/unread.text": "[Service]\nEnvironment=A=unread\n",
	},
	want: map[string]string{"A": "one", "B": "twowordsx", "E": "5 # no comment", "F": "a\nb", "G": "ab", "J": `\x $ "`},
}, {
	name: "a comment that ends in a backslash decides whether an environment file is one",
	v252: true,
	files: map[string]string{
		"usr/engine.service":           "[Service]\nExecStart=/bin/true\nEnvironment=A=unit B=unit C=unit\nEnvironmentFile=-FILES/quote.env\n",
		"etc/engine.service.d/zz.conf": "[Service]\nEnvironmentFile=-FILES/pair.env\n",
		"files/quote.env":              "# continued \\\nA=\"\\\\\\\n$A\n_F=\\\n%h\\$\nB=\\\\\\$\t\n# comment\ufffe=1\n",
		"files/pair.env":               "D=1\n; \\\nC=\xff\n",
	},
	want:     map[string]string{"A": "unit", "B": `\$`, "C": "unit", "_F": "%h$", "D": "1"},
	unsure:   []string{"B", "D", "_F"},
	problems: []string{"quote.env:2: only systemd before 254 ", "pair.env:3: only systemd before 254 "},
}}
