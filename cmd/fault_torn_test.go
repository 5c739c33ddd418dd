package cmd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testTorn puts torn and strange things under each of our names. Each command then says one clear thing and ends, the
// service stays startable, and what is not ours is lost by none of them.
func testTorn(t *testing.T, l *lane) {
	l = l.in(t)
	l.must("pkg", "unswitch", l.unit)
	l.serve()
	onBArmedC(l)
	l.must("pkg", "hold", l.unit, "--reason", "the week's run")
	l.must("pkg", "propose", l.unit, "aaaaaaa")
	before := l.keep()
	target := filepath.Join(l.dir, "target")
	names := map[string]bool{filepath.Join(l.dropIns(), "zz-1bit.conf.new"): true, filepath.Join(l.dropIns(), "zz-1bit.conf.prev.new"): true}
	for path, what := range before {
		if what != "folder" {
			names[path] = true
		}
	}
	if len(names) < 7 {
		t.Fatalf("only %d names: %v", len(names), names)
	}
	commands := [][]string{
		{"status"}, {"switch", "UNIT"}, {"hold", "UNIT", "--reason", "another"}, {"unhold", "UNIT"}, {"propose", "UNIT", "aaaaaaa"},
		{"switch", "UNIT", "aaaaaaa"}, {"rollback", "UNIT"}, {"rollback", "UNIT", "--undo"}, {"unblock", "UNIT", "hrx-ccccccc"},
		{"unswitch", "UNIT"},
	}
	ends, turn := map[int]int{}, 0
	for path := range names {
		for kind, put := range map[string]func() error{
			"empty": func() error { return os.WriteFile(path, nil, 0o644) },
			"NULs":  func() error { return os.WriteFile(path, make([]byte, 600), 0o644) },
			"half":  func() error { return os.WriteFile(path, []byte(before[path])[:len(before[path])/2], 0o644) },
			"a folder": func() error {
				return errors.Join(os.Mkdir(path, 0o755), os.WriteFile(path+"/mine", []byte("mine"), 0o644))
			},
			"a link": func() error { return os.Symlink(target, path) },
		} {
			where := fmt.Sprintf("%s is %s", filepath.Base(path), kind)
			l.restore(before)
			if err := errors.Join(os.WriteFile(target, []byte("mine"), 0o644), os.RemoveAll(path), put()); err != nil {
				t.Fatal(err)
			}
			l.reload()
			turn++
			for i, args := range commands {
				if i > 0 && (i+turn)%5 > 0 { // in five cases each has its turn
					continue
				}
				all := []string{"pkg"}
				for _, arg := range args {
					all = append(all, strings.ReplaceAll(arg, "UNIT", l.unit))
				}
				status, out, errs := l.onebit(all...)
				ends[status]++
				switch {
				case args[0] == "status" && status != 0, status == 2 && len(args) > 2, status > 5, strings.Contains(errs, "goroutine "):
					t.Errorf("%s: %v ended with %d: %s%s", where, args, status, out, errs)
				case status != 0 && strings.Count(errs, "1bit: ") != 1:
					t.Errorf("%s: %v ended with %d and says %q", where, args, status, errs)
				}
			}
			if data, err := os.ReadFile(target); err != nil || string(data) != "mine" {
				t.Errorf("%s: what the link leads to is %q, %v", where, data, err)
			}
			if kind == "a folder" || kind == "a link" {
				found, err := exec.Command("sh", "-c", `ls -d "$1"* && { cat "$1"*/mine 2>/dev/null || readlink "$1"* || :; }`, "sh", path).CombinedOutput()
				if err != nil || !strings.Contains(string(found), "mine") && !strings.Contains(string(found), target) {
					t.Errorf("%s: it is gone: %s", where, found)
				}
			}
			if st := l.status(where); l.startable(where) != st.armed() {
				t.Errorf("%s: the process is not started from %s", where, st.armed())
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d names, commands by exit status: %v", len(names), ends)
}
