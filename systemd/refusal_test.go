package systemd

import (
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	tests := []struct {
		unit, dropIn string
		want         string // a part of the reason; "" for none
	}{
		{"[Service]\nExecStart=/bin/x\n", "", ""},
		{"[Service]\nExecStart=/bin/x\nExecStart=/bin/y\n", "", "a.service:3: the unit does not start, there is more than one ExecStart="},
		{"[Service]\nExecStart=/bin/x\n", "[Service]\nExecStart=/bin/y\n", "z.conf:2: the unit does not start, there is more than one"},
		{"[Service]\nType=oneshot\nExecStart=/bin/x\nExecStart=/bin/y\n", "", ""},
		{"[Service]\nType=oneshot\nExecStart=/bin/x\n", "[Service]\nRestart=always\n", "z.conf:2: the unit does not start, a Type=oneshot unit"},
		{"[Service]\nType=oneshot\nExecStart=/bin/x\nRestart=on-failure\n", "", ""},
		{"[Service]\n", "", "a.service: the unit does not start, there is no ExecStart="},
		{"[Service]\nExecStart=/bin/x\n", "[Service]\nExecStart=\n", "there is no ExecStart="},
		{"[Service]\nExecStop=/bin/x\n", "", "there is no ExecStart="},
		{"[Service]\nExecStop=/bin/x\nRemainAfterExit=yes\n", "", ""},
		{"[Service]\nType=exec\nExecStop=/bin/x\nRemainAfterExit=yes\n", "", "there is no ExecStart="},
		{"[Service]\nExecStop=/bin/x\nExecStop=\nRemainAfterExit=yes\n", "", "there is no ExecStart="},
		{"[Unit]\nSuccessAction=reboot\n", "", ""},
		{"", "", "an empty unit file masks it"},
		{"[Service\nExecStart=/bin/x\n", "", "a.service:1: the unit does not start, its file has an error: section header without ]"},
		{"[Service]\nExecStart=/bin/x\n", "[Service\nExecStart=/bin/y\n", ""},
		{"[Service]\nExecStart=/bin/x %4\n", "", "a.service:2: the unit does not start, bad ExecStart="},
		{"[Service]\nExecStart=/bin/x\nExecStopPost=bin/y\n", "", "a.service:3: the unit does not start, bad ExecStopPost="},
		{"[Service]\nExecStart=/bin/x\n", "[Service]\nExecStopPost=bin/y\n", ""},
		{"[Service]\nExecStart=/bin/x\nWorkingDirectory=x\n", "", "a.service:3: the unit does not start, bad WorkingDirectory="},
		{"[Service]\nExecStart=/bin/x\nWorkingDirectory=-x\n", "[Service]\nWorkingDirectory=~\n", ""},
		{"[Service]\nExecStart=/bin/x\nWorkingDirectory=/a/../b\n", "", "a.service:3: the unit does not start, bad WorkingDirectory="},
		{"[Service]\nExecStart=/bin/x\nDynamicUser=maybe\n", "", "a.service:3: the unit does not start, bad DynamicUser="},
		{"[Service]\nExecStart=/bin/x\nDynamicUser=\n", "", "a.service:3: the unit does not start, bad DynamicUser="},
		{"[Service]\nExecStart=/bin/x\nRootDirectory=rel\n", "", "a.service:3: the unit does not start, bad RootDirectory="},
		{"[Service]\nExecStart=/bin/x\nRootImage=rel\n", "", "a.service:3: the unit does not start, bad RootImage="},
		{"[Service]\nExecStart=/bin/x\nPIDFile=x/../y\n", "", "a.service:3: the unit does not start, bad PIDFile="},
		{"[Service]\nExecStart=/bin/x\nDynamicUser=yes\nPIDFile=x\nRootDirectory=/x\nRootImage=\n", "[Service]\nDynamicUser=maybe\n", ""},
		{"[Service]\nExecStart=/bin/x\nUser=%4\n", "", "a.service:3: the unit does not start, bad User="},
		{"[Service]\nExecStart=/bin/x\nType=dbus\n", "", "a.service:3: the unit does not start, there is no BusName="},
		{"[Service]\nExecStart=/bin/x\nType=dbus\nBusName=a.b\n", "", ""},
		{"[Service]\nExecStart=/bin/x\nEnvironmentFile=/none\n", "", "a.service:3: the unit does not start, there is no environment file /none"},
		{"[Service]\nExecStart=/bin/x\nEnvironmentFile=-/none\n", "", ""},
	}
	for _, test := range tests {
		var files []*File
		for name, text := range map[string]string{"a.service": test.unit, "a.service.d/z.conf": test.dropIn} {
			file, err := ParseFile(name, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if name == "a.service" {
				files = append([]*File{file}, files...)
			} else {
				files = append(files, file)
			}
		}
		s := Effective(files, ReadEnvironmentFiles, nil)
		why, unsure := s.Refused()
		if (why == "") != (test.want == "") || !strings.Contains(why, test.want) || unsure != "" {
			t.Errorf("%q, %q: refused %q (%s), want %q", test.unit, test.dropIn, why, unsure, test.want)
		}
	}
	// Without a unit file, as for one that systemd made itself, nothing is missing.
	if why, _ := settingsOf(t, nil, "Environment=A=1\n").Refused(); why != "" {
		t.Errorf("refused: %s", why)
	}
	// An environment file that we may not read may be one that systemd does not take.
	if why, unsure := settingsOf(t, map[string]string{"/e": "denied"}, "EnvironmentFile=/e\n").Refused(); why != "" || unsure == "" {
		t.Errorf("refused %q, unsure %q", why, unsure)
	}
	// So may one that not every version takes.
	disputed := map[string]string{"/e": "A=1\n# \\\nB=\xff\n"}
	if why, unsure := settingsOf(t, disputed, "EnvironmentFile=/e\n").Refused(); why != "" || !strings.Contains(unsure, "/e:3: only systemd before 254") {
		t.Errorf("refused %q, unsure %q", why, unsure)
	}
	if why, unsure := settingsOf(t, disputed, "EnvironmentFile=-/e\n").Refused(); why != "" || unsure != "" {
		t.Errorf("refused %q, unsure %q", why, unsure)
	}
}
