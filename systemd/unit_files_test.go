package systemd

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnitFiles(t *testing.T) {
	root := t.TempDir()
	etc, usr := filepath.Join(root, "etc"), filepath.Join(root, "usr")
	for _, name := range []string{
		"etc/llm@.service", "etc/llm@.service.d/t.conf", `etc/llm@gpu\x2d0.service.d/a.conf`, "etc/llm@gpu-0.service.d/b.conf",
		"etc/a.service", "usr/a.service", "usr/a.service.d/z.conf", "etc/a.service.d/z.conf", "usr/a.service.d/not.read",
		"usr/service.d/all.conf", "usr/x.socket", "etc/b.service", "etc/llm2@.service", "etc/t@x.service.d/a.conf", "etc/alias2.service.d/a.conf",
		"usr/h.service", "etc/h-alias.service", "etc/d-.service.d/d.conf", "usr/d-e.service",
	} {
		writeFile(t, filepath.Join(root, name), "[Service]\n")
	}
	for link, target := range map[string]string{
		"etc/alias.service": "b.service", "etc/alias2.service": "alias.service", "etc/t@.service": "llm2@.service", "etc/default.target.wants/llm@one.service": "../llm@.service",
	} {
		path := filepath.Join(root, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("h.service", filepath.Join(usr, "h-alias.service")); err != nil {
		t.Fatal(err)
	}
	after := time.Now().Add(time.Second)
	f := ListUnitFiles([]string{etc, filepath.Join(root, "missing"), usr})
	names := []string{"a.service", "alias.service", "alias2.service", "b.service", "d-e.service", "h-alias.service", "h.service", "llm2@.service",
		"llm@.service", "llm@gpu-0.service", `llm@gpu\x2d0.service`, "llm@one.service", "t@.service", "t@x.service"}
	if diff := cmp.Diff(names, f.Services()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"llm@gpu-0.service", `llm@gpu\x2d0.service`, "llm@one.service"}, Instances("llm@.service", names)); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string][]string{
		"a.service":            {etc + "/a.service", usr + "/service.d/all.conf", etc + "/a.service.d/z.conf"},
		"d-e.service":          {usr + "/d-e.service", usr + "/service.d/all.conf", etc + "/d-.service.d/d.conf"},
		"llm@gpu-0.service":    {etc + "/llm@.service", usr + "/service.d/all.conf", etc + "/llm@gpu-0.service.d/b.conf", etc + "/llm@.service.d/t.conf"},
		`llm@gpu\x2d0.service`: {etc + "/llm@.service", etc + `/llm@gpu\x2d0.service.d/a.conf`, usr + "/service.d/all.conf", etc + "/llm@.service.d/t.conf"},
	} {
		u, ok := f.Unit(Listed{Name: name}, after)
		if !ok {
			t.Errorf("%s is not told from its files", name)
			continue
		}
		got := append([]string{u.FragmentPath}, u.DropInPaths...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, since := range map[string]time.Time{
		"a.service": time.Now().Add(-time.Hour), "d-e.service": {}, "alias.service": after, "none.service": after,
		"b.service": after, "alias2.service": after, "llm2@x.service": after, "t@x.service": after, "h.service": after, "h-alias.service": after,
	} {
		if _, ok := f.Unit(Listed{Name: name}, since); ok {
			t.Errorf("%s is told from files that may have changed", name)
		}
	}
	for name, want := range map[string]string{
		"b.service": "/etc/alias2.service.d/a.conf", "llm2@x.service": "/etc/t@x.service.d/a.conf",
	} {
		if files, hidden := f.Files(name); hidden || !slices.Contains(files, root+want) {
			t.Errorf("files of %s: %v (%v), want also %s", name, files, hidden, want)
		}
	}
	// A time that is set back does not hide a change.
	late := time.Now()
	time.Sleep(50 * time.Millisecond)
	z := filepath.Join(etc, "a.service.d/z.conf")
	writeFile(t, z, "[Service]\nA=1\n")
	if err := os.Chtimes(z, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, ok := ListUnitFiles([]string{etc, usr}).Unit(Listed{Name: "a.service"}, late); ok {
		t.Error("a drop-in that was written later is taken for old")
	}
}

func TestProcessesByService(t *testing.T) {
	cgroups, proc := t.TempDir(), t.TempDir()
	for dir, pids := range map[string]string{
		"u":                     "",
		"u/init.scope":          "1\n",
		"u/app.slice/a.service": "12\n11\n",
		"u/app.slice/a.service/inner.service/x.scope": "13\n",
		"u/app.slice/_cpu.service":                    "14\n",
		"u/user@7.service/init.scope":                 "15\n",
		"u/user@7.service/app.slice/b.service":        "16\n",
		`u/l.slice/llm@gpu\x2d0.service`:              "17\n",
		"u/run.scope":                                 "18\n",
	} {
		writeFile(t, filepath.Join(cgroups, dir, "cgroup.procs"), pids)
	}
	for pid, group := range map[string]string{
		"1": "/u/init.scope", "11": "/u/app.slice/a.service", "12": "/u/app.slice/a.service", "13": "/u/app.slice/a.service/inner.service/x.scope",
		"14": "/u/app.slice/_cpu.service", "15": "/u/user@7.service/init.scope", "16": "/u/user@7.service/app.slice/b.service",
		"17": `/u/l.slice/llm@gpu\x2d0.service`, "18": "/u/run.scope", "19": "/elsewhere/c.service",
	} {
		writeFile(t, filepath.Join(proc, pid, "cgroup"), "0::"+group+"\n")
	}
	want := map[string][]int{
		"a.service": {11, 12, 13}, "cpu.service": {14}, "user@7.service": {15}, `llm@gpu\x2d0.service`: {17},
	}
	for _, root := range []string{cgroups, t.TempDir()} { // the second has no control groups
		got, err := ProcessesByService(proc, root, "/u")
		if err != nil {
			t.Fatal(err)
		}
		for name, pids := range got {
			if len(pids) == 0 {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
