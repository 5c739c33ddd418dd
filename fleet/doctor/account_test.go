package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// etc makes a root with accounts: ai, who is in render and in a group that an agent shares, and agent.
func etc(t *testing.T, passwd, group string) *look {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{"etc/passwd": passwd, "etc/group": group} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &look{Options: Options{Root: root, UID: 1000, User: "ai"}}
}

const (
	passwd = "root:x:0:0:root:/root:/bin/bash\nai:x:1000:1000::/home/ai:/bin/sh\nagent:x:1001:1001::/home/agent:/bin/sh\nshort:x\n"
	group  = "root:x:0:\nai:x:1000:\nrender:x:105:ai\nteam:x:200:ai,agent\nsudo:x:27:agent\nodd:x:number:ai\n"
)

func TestAccounts(t *testing.T) {
	list, groups, err := etc(t, passwd, group).accounts()
	if err != nil {
		t.Fatal(err)
	}
	ai, err := find(list, "ai")
	if want := []int{1000, 105, 200}; err != nil || !slices.Equal(ai.groups, want) {
		t.Errorf("ai is in %v (%v), want %v", ai.groups, err, want)
	}
	if agent, err := find(list, "1001"); err != nil || agent.name != "agent" {
		t.Errorf("uid 1001 is %+v, %v", agent, err)
	}
	if _, err := find(list, "nobody"); err == nil {
		t.Error("nobody was found")
	}
	if groups["render"] != 105 || len(groups) != 5 {
		t.Errorf("groups %v", groups)
	}
}

// statInfo is a file of an owner, a group and a mode.
type statInfo struct {
	os.FileInfo
	mode     os.FileMode
	uid, gid uint32
}

func (s statInfo) Mode() os.FileMode { return s.mode }
func (s statInfo) IsDir() bool       { return s.mode.IsDir() }
func (s statInfo) Sys() any          { return &syscall.Stat_t{Uid: s.uid, Gid: s.gid} }

func TestOthersIn(t *testing.T) {
	l := etc(t, passwd, group)
	accounts, _, err := l.accounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		info statInfo
		want string
	}{
		{"ours alone", statInfo{mode: 0o600, uid: 1000, gid: 1000}, ""},
		{"root's", statInfo{mode: 0o644}, ""},
		{"of a group of one", statInfo{mode: 0o664, uid: 1000, gid: 1000}, ""},
		{"of a group that an agent is in", statInfo{mode: 0o664, uid: 1000, gid: 200}, "the group 200 (agent)"},
		{"everybody's", statInfo{mode: 0o666, uid: 1000, gid: 1000}, "every account"},
		{"a folder like /tmp", statInfo{mode: os.ModeDir | os.ModeSticky | 0o777}, ""},
		{"a folder of everybody's", statInfo{mode: os.ModeDir | 0o777}, "every account"},
		{"a mask", statInfo{mode: os.ModeDevice | os.ModeCharDevice | 0o666}, ""},
		{"the agent's", statInfo{mode: 0o644, uid: 1001, gid: 1001}, "the account agent"},
		{"a stranger's", statInfo{mode: 0o644, uid: 4711}, "the account of uid 4711"},
	} {
		if got, err := l.othersIn(tt.info, accounts, 1000); got != tt.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	if got, err := l.othersIn(statInfo{mode: 0o644, uid: 1001, gid: 1001}, accounts, 1001); got != "" || err != nil {
		t.Errorf("of the account that it is for: %q, %v", got, err)
	}
	// In a user namespace 65534 is whoever is not mapped.
	nobody := statInfo{mode: os.ModeDir | 0o755, uid: 65534, gid: 65534}
	for ids, known := range map[string]bool{"0 0 4294967295\n": true, "1000 1000 1\n": false, "0 100000 65536\n1000 1000 1\n": false} {
		for _, kind := range []string{"uid", "gid"} {
			path := l.path("proc/self", kind+"_map")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(ids), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if who, err := l.othersIn(nobody, accounts, 1000); (err == nil) != known || (who != "") != known {
			t.Errorf("with the map %q: %q, %v", ids, who, err)
		}
	}
}

// Without /proc nothing is known of a service.
func TestWithoutProc(t *testing.T) {
	if err := seesProcesses("/proc"); err != nil {
		t.Error(err)
	}
	if err := seesProcesses(t.TempDir()); err == nil {
		t.Error("an empty /proc is taken for one")
	}
}

// What leads to a file counts, also through links, and nobody's folder is given away.
func TestOpenPath(t *testing.T) {
	l := etc(t, passwd, group)
	l.UID = os.Getuid()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	open, units, link := filepath.Join(dir, "data"), filepath.Join(dir, "data/x/user"), filepath.Join(dir, "home/user")
	file := filepath.Join(dir, "file")
	err = errors.Join(os.MkdirAll(units, 0o755), os.Mkdir(filepath.Dir(link), 0o755), os.Symlink("../data/x/user", link), os.WriteFile(file, nil, 0o644),
		os.Chmod(file, 0o666), os.Chmod(open, 0o777))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, where, remedy string }{
		{units, open, "chmod +t " + open},
		{link, open, "chmod +t " + open},
		{filepath.Join(link, "not/there"), open, "chmod +t " + open},
		{open, open, "chmod go-w " + open},
		{file, file, "chmod go-w " + file},
		{filepath.Dir(link), "", ""},
	} {
		var out []Finding
		o := &opening{look: l, seen: map[string]bool{}, add: found(&out)}
		o.path(tt.path, l.UID)
		out = slices.DeleteFunc(out, func(f Finding) bool { return !strings.HasPrefix(f.Where, dir+"/") })
		switch {
		case tt.where == "" && len(out) > 0, tt.where != "" && (len(out) != 1 || out[0].Where != tt.where || out[0].Remedy != tt.remedy):
			t.Errorf("%s: %+v, want %s", tt.path, out, tt.where)
		}
	}
	var out []Finding
	l.UID++ // another account than the folders'
	o := &opening{look: l, seen: map[string]bool{}, add: found(&out)}
	o.path(units, l.UID)
	for _, f := range out {
		if f.Where != units && strings.Contains(f.Remedy, "chown") {
			t.Errorf("the remedy takes %s from its owner: %s", f.Where, f.Remedy)
		}
	}
}

func TestMay(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode os.FileMode
		uid  int
		gids []int
		want bool
	}{
		{"root", 0o000, 0, nil, true},
		{"the owner", 0o600, 5, nil, true},
		{"an owner without the right", 0o066, 5, []int{105}, false},
		{"the group", 0o660, 1000, []int{7, 105}, true},
		{"a group that may only read", 0o646, 1000, []int{105}, false},
		{"everybody", 0o666, 1000, []int{1000}, true},
		{"nobody", 0o660, 1000, []int{1000}, false},
	} {
		if got := may(tt.mode, &syscall.Stat_t{Uid: 5, Gid: 105}, tt.uid, tt.gids); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestPolicyNamesWhoIsRoot(t *testing.T) {
	l := etc(t, passwd, group)
	if got := strings.Join(l.rootly(), ""); !strings.Contains(got, "agent (sudo)") || strings.Contains(got, "ai") {
		t.Errorf("as root can act: %q", got)
	}
	if got := l.polkit(); !strings.Contains(got, "for root alone") {
		t.Errorf("without polkit: %q", got)
	}
	for path, text := range map[string]string{
		"usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service": "",
		"etc/polkit-1/rules.d/10-ai.rules":                                    `polkit.addRule(function(action) { if (action.id == "org.freedesktop.systemd1.manage-units") return "yes"; })`,
		"etc/polkit-1/rules.d/20-other.rules":                                 "",
	} {
		path = l.path(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.polkit(); !strings.Contains(got, "/etc/polkit-1/rules.d/10-ai.rules") || strings.Contains(got, "20-other") {
		t.Errorf("with polkit and a rule: %q", got)
	}
}

func FuzzAccounts(f *testing.F) {
	f.Add(passwd, group)
	f.Add("a:b:c:d:e:f:g\n:::::::\n", ":::\n::1:,,\n")
	f.Fuzz(func(t *testing.T, passwd, group string) {
		list, _ := parseAccounts(passwd, group)
		for _, a := range list {
			if len(a.groups) == 0 || a.groups[0] != a.gid {
				t.Errorf("%+v", a)
			}
		}
	})
}
