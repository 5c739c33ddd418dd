package systemd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	godbus "github.com/godbus/dbus/v5"
)

func TestLast(t *testing.T) {
	s := settingsOf(t, nil,
		"Restart=always\nRestart=sometimes\nType=notify-reload\nFoo=1\nUser=a\nWorkingDirectory=/a\nTimeoutSec=5\n",
		"Restart=no\nRestart=\nFoo=\nFoo=3\nUser=\nWorkingDirectory=-relative\nTimeoutStartSec=6\nTimeoutStartSec=x\n[Unit]\nType=exec\nFoo=9\n",
		"RestartSec=%k\nRestartSec=1\nUser=b\n")
	tests := []struct{ section, key, want, hides, refused string }{
		{"Service", "Restart", "f1:2 no", "f0:2", "f0:3 f1:3"},
		{"Service", "Type", "f0:4 notify-reload", "", "f1:11"},
		{"Service", "Foo", "f1:5 3", "", ""},
		{"Unit", "Foo", "f1:12 9", "", ""},
		{"Service", "User", "f2:4 b", "", ""},
		{"Service", "WorkingDirectory", "f0:7 /a", "", "f1:7"},
		{"Service", "TimeoutStartSec", "f1:8 6", "f0:8", "f1:9"},
		{"Service", "TimeoutStopSec", "f0:8 5", "", ""},
		{"Service", "RestartSec", "f2:3 1", "", "f2:2"},
		{"Service", "NotifyAccess", "", "", ""},
		{"Unit", "Restart", "", "", ""},
	}
	for _, test := range tests {
		got := s.Last(test.section, test.key)
		list := func(values []Value) string {
			var all []string
			for _, value := range values {
				all = append(all, fmt.Sprintf("%s:%d", value.File, value.Number))
			}
			return strings.Join(all, " ")
		}
		text := ""
		if got.File != "" {
			text = fmt.Sprintf("%s:%d %s", got.File, got.Number, got.Line.Value)
		}
		if text != test.want || list(got.Hides) != test.hides || list(got.Refused) != test.refused {
			t.Errorf("%s/%s is %q, hides %q, refused %q", test.section, test.key, text, list(got.Hides), list(got.Refused))
		}
		if unsure := test.key == "Type" && test.section == "Service"; (got.Unsure != "") != unsure {
			t.Errorf("%s/%s: unsure %q", test.section, test.key, got.Unsure)
		}
	}
}

// TestSingleValuesReal gives systemd a good value of every key and then others, good and bad, and
// compares which of them it takes.
func TestSingleValuesReal(t *testing.T) {
	if !inside(t, false) {
		return
	}
	keys := []struct {
		section, key, property string
		first                  string // in the unit file
		has                    any    // systemd's word for it
		values                 []string
	}{
		{"Service", "Type", "Type", "exec", "exec", []string{"simple", "oneshot", "notify", "idle", "forking", "dbus", "", "Notify", "exec ", "x", "simple # c"}},
		{"Service", "Restart", "Restart", "on-abort", "on-abort", []string{"always", "no", "on-failure", "on-success", "on-watchdog", "on-abnormal", "", "yes", "ALWAYS"}},
		{"Service", "NotifyAccess", "NotifyAccess", "exec", "exec", []string{"all", "main", "", "any", "Main"}},
		{"Service", "RemainAfterExit", "RemainAfterExit", "yes", true, []string{"no", "off", "0", "f", "N", "False", "", "nein", "2", "disabled"}},
		{"Service", "RestartSec", "RestartUSec", "77", uint64(77e6), spanTexts},
		{"Service", "TimeoutStartSec", "TimeoutStartUSec", "77", uint64(77e6), spanTexts},
		{"Unit", "StartLimitIntervalSec", "StartLimitIntervalUSec", "77", uint64(77e6), spanTexts},
		{"Unit", "StartLimitBurst", "StartLimitBurst", "77", uint32(77), []string{"5", "0", "+5", "-5", "5 ", "", "x", "5x", "0x10", "010", "0b11", "0o7", "1_0", "4294967295", "4294967296", "5.0", " 6"}},
		{"Service", "WorkingDirectory", "WorkingDirectory", "/first", "/first", []string{"/tmp", "-/tmp", "-relative", "", "~", "-~", "-%h"}},
		{"Service", "User", "User", "ai", "ai", []string{"", "root", "1"}},
	}
	sections := map[string][]string{"Service": {"Service", "Service", "Service", "Unit", "service"}, "Unit": {"Unit", "Service"}}
	g, m := rand.New(rand.NewPCG(seed(t), 3)), connectHere(t)
	dir, dropIns := userUnitDir(t), map[string]string{}
	const units = 100
	for i := range units {
		unit, dropIn := "[Service]\nExecStart=/bin/true\n", ""
		for _, key := range keys {
			unit += fmt.Sprintf("[%s]\n%s=%s\n", key.section, key.key, key.first)
			for range g.IntN(3) {
				section, name := sections[key.section][g.IntN(len(sections[key.section]))], key.key
				if name == "StartLimitIntervalSec" && g.IntN(2) == 0 {
					name = "StartLimitInterval"
				}
				dropIn += fmt.Sprintf("[%s]\n%s=%s\n", section, name, key.values[g.IntN(len(key.values))])
			}
		}
		name := fmt.Sprintf("single-%d.service", i)
		dropIns[name] = dropIn
		writeFile(t, filepath.Join(dir, name), unit)
		writeFile(t, filepath.Join(dir, name+".d/a.conf"), dropIn)
		t.Cleanup(func() {
			os.Remove(filepath.Join(dir, name))
			os.RemoveAll(filepath.Join(dir, name+".d"))
		})
	}
	reload(t, m)
	specifiers, err := m.Specifiers(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, dropIn := range dropIns {
		has := map[string]map[string]godbus.Variant{}
		for section, iface := range map[string]string{"Unit": unitInterface, "Service": serviceInterface} {
			if has[section], err = m.all(limited(t), unitPath(name), iface); err != nil {
				t.Fatal(err)
			}
		}
		u := &Unit{ID: name, FragmentPath: filepath.Join(dir, name), DropInPaths: []string{filepath.Join(dir, name+".d/a.conf")}}
		settings, err := ReadSettings(u, specifiers)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			has := has[key.section][key.property].Value()
			got := settings.Last(key.section, key.key)
			first := got.File == u.FragmentPath
			if text, ok := has.(string); ok && got.Line.Value != "" && key.key != "User" && key.key != "WorkingDirectory" {
				if text != got.Line.Value {
					t.Errorf("%s=%s, we say %q: %q", key.key, text, got.Line.Value, dropIn)
				}
			} else if (has == key.has) != first {
				t.Errorf("%s=%v, we say %q of line %d: %q", key.key, has, got.Line.Value, got.Number, dropIn)
			}
		}
	}
}

// FuzzLast: no bytes of a file upset the reader.
func FuzzLast(f *testing.F) {
	f.Add("Restart=always\nRestartSec=5x\n[Unit]\nStartLimitBurst=\n", "Restart")
	f.Add("TimeoutSec=1h.5 \nTimeoutStartSec=infinity\n", "TimeoutStartSec")
	f.Fuzz(func(t *testing.T, text, key string) {
		file, err := ParseFile("a.service", []byte("[Service]\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		s := Effective([]*File{file}, ReadEnvironmentFiles, nil)
		for _, section := range []string{"Service", "Unit"} {
			if got := s.Last(section, key); got.File == "" && len(got.Hides) > 0 {
				t.Errorf("nothing hides %v", got.Hides)
			}
		}
	})
}
