package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// settingsOf works out what texts amount to, the first of them the unit file, with environment
// files by their path.
func settingsOf(t *testing.T, environmentFiles map[string]string, texts ...string) *Settings {
	t.Helper()
	var files []*File
	for i, text := range texts {
		file, err := ParseFile(fmt.Sprintf("f%d", i), []byte("[Service]\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return Effective(files, func(pattern string) ([]EnvironmentBytes, error) {
		text, ok := environmentFiles[pattern]
		switch {
		case !ok:
			return nil, fs.ErrNotExist
		case text == "denied":
			return nil, fs.ErrPermission
		}
		return []EnvironmentBytes{{Path: pattern, Data: []byte(text)}}, nil
	}, nil)
}

func TestSettingsHistory(t *testing.T) {
	s := settingsOf(t, map[string]string{"/e": "A=file\nB=file\n"},
		"PassEnvironment=A\nEnvironment=A=0\nEnvironmentFile=/e\n",
		"Environment=A=1 B=1\n",
		"Environment=\nEnvironment=C=2\n",
		"Environment=A=3\nUnsetEnvironment=A B=other C=2\n")
	want := []Assignment{
		{Key: "A", File: "f0", Line: 2, Kind: KindPassEnvironment},
		{Key: "A", Value: "0", File: "f0", Line: 3, Kind: KindEnvironment},
		{Key: "A", Value: "1", File: "f1", Line: 2, Kind: KindEnvironment},
		{Key: "A", File: "f2", Line: 2, Kind: KindReset},
		{Key: "A", Value: "3", File: "f3", Line: 2, Kind: KindEnvironment},
		{Key: "A", Value: "file", File: "/e", Line: 1, Kind: KindEnvironmentFile},
		{Key: "A", File: "f3", Line: 3, Kind: KindUnsetEnvironment},
	}
	ignore := cmpopts.IgnoreFields(Assignment{}, "Unsure", "only")
	if diff := cmp.Diff(want, s.History("A"), ignore); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Setting{"B": {Value: "file", File: "/e", Line: 2}}, s.Environment()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if history := s.History("B"); len(history) != 3 || history[2].Kind != KindEnvironmentFile {
		t.Errorf("an UnsetEnvironment= of another value counts: %+v", history)
	}
	if history := s.History("C"); len(history) != 2 || history[0].Kind == KindReset {
		t.Errorf("a reset before all that it could reset counts: %+v", history)
	}
	if diff := cmp.Diff([]string{"A", "B", "C"}, s.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if history := s.History("D"); history != nil {
		t.Errorf("history of nothing: %+v", history)
	}
}

func TestSettingsAboveAndBelow(t *testing.T) {
	tests := []struct {
		name         string
		files        []string // f1 is ours
		above, below []string
	}{
		{"alone", []string{"", "Environment=A=us"}, nil, nil},
		{"an earlier drop-in", []string{"Environment=A=unit", "Environment=A=us"}, nil, []string{"f0:2 unit"}},
		{"a later drop-in", []string{"", "Environment=A=us", "Environment=A=later"}, []string{"f2:2 later"}, nil},
		{"a later reset", []string{"", "Environment=A=us", "Environment="}, []string{"f2:2 "}, nil},
		{"an earlier reset", []string{"Environment=A=1\nEnvironment=\nEnvironment=A=2", "Environment=A=us"}, nil, []string{"f0:4 2"}},
		{"an environment file", []string{"EnvironmentFile=/e", "Environment=A=us"}, []string{"/e:1 file"}, nil},
		{"an environment file that is dropped", []string{"EnvironmentFile=/e", "Environment=A=us\nEnvironmentFile="}, nil, nil},
		{"unset anywhere", []string{"UnsetEnvironment=A", "Environment=A=us"}, []string{"f0:2 "}, nil},
		{"unset of our value", []string{"UnsetEnvironment=A=us", "Environment=A=us"}, []string{"f0:2 us"}, nil},
		{"unset of another value", []string{"UnsetEnvironment=A=x", "Environment=A=us"}, nil, nil},
		{"ours twice", []string{"", "Environment=A=1\nEnvironment=A=us"}, nil, nil},
		{"not ours", []string{"Environment=A=unit", "Environment=B=us"}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := settingsOf(t, map[string]string{"/e": "A=file\n"}, test.files...)
			places := func(assignments []Assignment) (out []string) {
				for _, a := range assignments {
					out = append(out, fmt.Sprintf("%s:%d %s", a.File, a.Line, a.Value))
				}
				return out
			}
			if diff := cmp.Diff(test.above, places(s.Above("A", "f1"))); diff != "" {
				t.Errorf("above (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.below, places(s.Below("A", "f1"))); diff != "" {
				t.Errorf("below (-want +got):\n%s", diff)
			}
			if setting := s.Environment()["A"]; (setting.Value == "us") != (test.above == nil && test.name != "not ours") {
				t.Errorf("effective: %+v", setting)
			}
		})
	}
}

func TestSettingsUnsure(t *testing.T) {
	tests := []struct {
		name, text   string
		sure, unsure []string // KEY=value
	}{
		{"handed through", "PassEnvironment=A B\nEnvironment=B=1", []string{"B=1"}, []string{"A="}},
		{"handed through and reset", "PassEnvironment=A\nEnvironment=A=1\nEnvironment=", nil, []string{"A="}},
		{"a specifier that is not known here", "Environment=A=%b B=2", []string{"B=2"}, []string{"A=%b"}},
		{"one that is set again", "Environment=A=%b\nEnvironment=A=2", []string{"A=2"}, nil},
		{"a file that may not be read", "EnvironmentFile=/denied\nEnvironment=A=1", nil, []string{"A=1"}},
		{"a file whose name is unsure", "EnvironmentFile=-/%b\nEnvironment=A=1", nil, []string{"A=1"}},
		{"unset by an unsure value", "Environment=A=1 B=2\nUnsetEnvironment=A=%b", []string{"B=2"}, []string{"A=1"}},
		{"unset of an unsure value", "Environment=A=%b\nUnsetEnvironment=A=1", nil, []string{"A=%b"}},
		{"unset whatever it is", "Environment=A=%b\nUnsetEnvironment=A", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := settingsOf(t, map[string]string{"/denied": "denied"}, test.text)
			var sure, unsure []string
			for key, setting := range s.Environment() {
				if setting.Unsure == "" {
					sure = append(sure, key+"="+setting.Value)
				} else {
					unsure = append(unsure, key+"="+setting.Value)
				}
			}
			if diff := cmp.Diff(test.sure, sure); diff != "" {
				t.Errorf("sure (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.unsure, unsure); diff != "" {
				t.Errorf("unsure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsProblems(t *testing.T) {
	tests := []struct {
		text, want string
		fatal      bool
	}{
		{"Environment=A=1 \"B", "f0:2: from here on ignored", false},
		{"Environment=A=p%40", "f0:2: ignored, a % that should be doubled", false},
		{"Environment=A.B=1", "f0:2: ignored, not a valid assignment", false},
		{"UnsetEnvironment=A-B", "f0:2: ignored, not a valid assignment", false},
		{"PassEnvironment=A=1", "f0:2: ignored, not a valid assignment", false},
		{"EnvironmentFile=relative", "f0:2: ignored, not an absolute path", false},
		{"EnvironmentFile=/none", "f0:2: the unit does not start, there is no environment file /none", true},
		{"EnvironmentFile=/bad", "f0:2: the unit does not start, not an environment file", true},
		{"EnvironmentFile=-/bad", "f0:2: left out: not an environment file", false},
		{"[Service", "f0:2: section header without ]", true},
	}
	for _, test := range tests {
		s := settingsOf(t, map[string]string{"/bad": "A=\xff\n"}, test.text)
		if len(s.Problems) != 1 || !strings.HasPrefix(s.Problems[0].String(), test.want) || s.Problems[0].Fatal != test.fatal {
			t.Errorf("%s: %v, want one: %s (fatal: %v)", test.text, s.Problems, test.want, test.fatal)
		}
	}
	if s := settingsOf(t, nil, "EnvironmentFile=-/none\nEnvironment=A=1"); len(s.Problems) != 0 {
		t.Errorf("a file that may be missing: %v", s.Problems)
	}
}

// TestReadSettingsEdits asks what would be if a drop-in were written, changed or removed.
func TestReadSettingsEdits(t *testing.T) {
	root := t.TempDir()
	strong, weak := filepath.Join(root, "strong"), filepath.Join(root, "weak")
	unit := filepath.Join(weak, "llm.service")
	ours := filepath.Join(strong, "llm.service.d", "zz-1.conf")
	writeFile(t, unit, "[Service]\nExecStart=/x\nEnvironment=A=unit\n")
	writeFile(t, weak+"/llm.service.d/hrx.conf", "[Service]\nEnvironment=A=hrx\n")
	writeFile(t, weak+"/service.d/zz-2.conf", "[Service]\nEnvironment=B=all\n")
	u := &Unit{ID: "llm.service", FragmentPath: unit, SearchPath: []string{strong, weak}}
	u, err := u.Rescan()
	if err != nil {
		t.Fatal(err)
	}
	text := func(value string) []byte { return []byte("[Service]\nEnvironment=A=" + value + " B=" + value + "\n") }
	tests := []struct {
		name  string
		edits []Edit
		want  string // A and B
	}{
		{"as it is", nil, "hrx all"},
		{"ours written", []Edit{{Path: ours, Data: text("us")}}, "us all"},
		{"ours and one after it", []Edit{{Path: strong + "/llm.service.d/zzz.conf", Data: text("later")}, {Path: ours, Data: text("us")}}, "later later"},
		{"one that is there rewritten", []Edit{{Path: weak + "/llm.service.d/hrx.conf", Data: text("new")}}, "new all"},
		{"one that is there removed", []Edit{{Path: weak + "/llm.service.d/hrx.conf", Gone: true}}, "unit all"},
		{"one that is not there removed", []Edit{{Path: ours, Gone: true}}, "hrx all"},
		{"a stronger one of the same name", []Edit{{Path: strong + "/llm.service.d/hrx.conf", Data: text("strong")}}, "strong all"},
		{"a weaker one of the same name", []Edit{{Path: strong + "/service.d/hrx.conf", Data: text("weak")}}, "hrx all"},
		{"an empty one hides", []Edit{{Path: strong + "/llm.service.d/zz-2.conf"}}, "hrx "},
		{"the unit file", []Edit{{Path: unit, Data: text("file")}, {Path: weak + "/llm.service.d/hrx.conf", Gone: true}}, "file all"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := ReadSettings(u, nil, test.edits...)
			if err != nil {
				t.Fatal(err)
			}
			all := s.Environment()
			if got := all["A"].Value + " " + all["B"].Value; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if _, err := ReadSettings(u, nil, Edit{Path: strong + "/llm.service.d/x.tmp", Data: text("x")}); err == nil {
		t.Error("a name that systemd does not read is taken")
	}
	if _, err := ReadSettings(u, nil, Edit{Path: root + "/elsewhere.d/hrx.conf"}); !errors.Is(err, errSameName) {
		t.Errorf("a folder that is not searched: %v", err)
	}
}

func TestReadSettingsLeavesOut(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/a.conf/file", "")
	writeFile(t, dir+"/d.conf", "[Service]\nEnvironment=A=1\n")
	if err := os.Symlink("/dev/null", dir+"/b.conf"); err != nil {
		t.Fatal(err)
	}
	u := &Unit{ID: "x.service", DropInPaths: []string{dir + "/a.conf", dir + "/b.conf", dir + "/c.conf", dir + "/d.conf"}}
	s, err := ReadSettings(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Environment()["A"].Value != "1" || len(s.Problems) != 2 {
		t.Errorf("%v, problems %v; want A=1 and two problems, of a.conf and c.conf", s.Environment(), s.Problems)
	}
}

func TestReadEnvironmentFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/1.env", "a/2.env", "a/.3.env", "a-/4.env", "[x/5.env"} {
		writeFile(t, filepath.Join(dir, name), name)
	}
	tests := []struct {
		pattern string
		want    []string
	}{
		{"a/2.env", []string{"a/2.env"}},
		{"*/*.env", []string{"[x/5.env", "a-/4.env", "a/2.env", "b/1.env"}},
		{"a/.*.env", []string{"a/.3.env"}},
		{"[!a]/*.env", []string{"b/1.env"}},
		{`\[x/5.env`, []string{"[x/5.env"}},
		{"none", nil},
		{"*.none", nil},
	}
	for _, test := range tests {
		files, err := ReadEnvironmentFiles(dir + "/" + test.pattern)
		var got []string
		for _, file := range files {
			got = append(got, strings.TrimPrefix(file.Path, dir+"/"))
			if string(file.Data) != got[len(got)-1] || file.Err != nil {
				t.Errorf("%s holds %q, %v", file.Path, file.Data, file.Err)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || errors.Is(err, fs.ErrNotExist) != (test.want == nil) {
			t.Errorf("%s: %v (-want +got):\n%s", test.pattern, err, diff)
		}
	}
	if files, err := ReadEnvironmentFiles(dir + "/a"); err != nil || len(files) != 1 || files[0].Err == nil {
		t.Errorf("a folder: %v, %v", files, err)
	}
}
