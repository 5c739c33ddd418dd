package cmd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// testDisks gives the unit's folder and the state file systems that are full, without an inode, read-only or not there
// at all. It wants root.
func testDisks(t *testing.T, l *lane) {
	for _, tt := range []struct {
		name     string
		damage   func(*lane)
		switches bool     // a switch goes through
		says     []string // else its error says one of these
		rollback bool     // a rollback goes through
	}{
		{name: "the unit's folder is full", damage: func(l *lane) { l.small(l.dropIns(), ""); l.fill(l.dropIns()) }, says: []string{"no room"}, rollback: true},
		{name: "the state is full", damage: func(l *lane) { l.small(l.state(), ""); l.fill(l.state()) }, says: []string{"no space left"}, rollback: true},
		{name: "the unit's folder has no inode", damage: func(l *lane) { l.small(l.dropIns(), ",nr_inodes=12"); l.crowd(l.dropIns()) }, says: []string{"no room"}, rollback: true},
		{name: "the state has no inode", damage: func(l *lane) { l.small(l.state(), ",nr_inodes=12"); l.crowd(l.state()) }, switches: true, rollback: true},
		{name: "the unit's folder is read-only", damage: func(l *lane) { l.small(l.dropIns(), ""); l.readOnly(l.dropIns()) }, says: []string{"mounted read-only"}},
		{name: "the state is read-only", damage: func(l *lane) { l.small(l.state(), ""); l.readOnly(l.state()) }, says: []string{"read-only"}, rollback: true},
		{name: "the state is gone", damage: func(l *lane) { l.move(l.state()) }, switches: true, rollback: true},
		{name: "the state is a file", damage: func(l *lane) {
			l.move(l.state())
			writeTree(l.T, map[string]string{l.state(): "mine\n"})
		}, says: []string{"not a directory"}, rollback: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := l.in(t)
			l.must("pkg", "unswitch", l.unit)
			l.serve()
			onBArmedC(l)
			before := l.keep().dropIns(l)
			tt.damage(l)
			status, out, errs := l.onebit("pkg", "switch", l.unit, "aaaaaaa")
			switch {
			case (status == 0) != tt.switches:
				t.Errorf("switch ended with %d: %s%s", status, out, errs)
			case status != 0 && !containsAny(errs, tt.says):
				t.Errorf("switch ended with %d and does not say %q: %s", status, tt.says, errs)
			}
			st := l.status("after the switch")
			if want := map[bool]string{false: "hrx-ccccccc", true: "hrx-aaaaaaa"}[tt.switches]; st.armed() != want || st.OnDisk != nil {
				t.Errorf("after the switch %s is armed, %v on disk", st.armed(), st.OnDisk)
			}
			status, out, errs = l.onebit("pkg", "rollback", l.unit)
			if (status == 0) != tt.rollback || status != 0 && !containsAny(errs, tt.says) {
				t.Errorf("rollback ended with %d: %s%s", status, out, errs)
			}
			st = l.status("after the rollback")
			if want := map[bool]string{false: "hrx-ccccccc", true: "hrx-bbbbbbb"}[tt.rollback]; st.armed() != want || st.OnDisk != nil {
				t.Errorf("after the rollback %s is armed, %v on disk", st.armed(), st.OnDisk)
			}
			if got := l.startable("after the rollback"); got != st.armed() {
				t.Errorf("status says %s, the process was started from %s", st.armed(), got)
			}
			for path, what := range before {
				if _, still := l.keep()[path]; !still {
					t.Errorf("%s is gone: %q", path, what)
				}
			}
		})
	}
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// small puts a small file system of its own below a folder, with what is in it.
func (l *lane) small(dir, options string) {
	l.Helper()
	kept := filepath.Join(l.dir, "below")
	mustRun(l.T, "cp", "-a", dir, kept)
	mustRun(l.T, "mount", "-t", "tmpfs", "-o", "size=64k,mode=755"+options, "tmpfs", dir)
	mustRun(l.T, "cp", "-a", kept+"/.", dir)
	l.reload()
	l.Cleanup(func() {
		mustRun(l.T, "rm", "-rf", kept)
		mustRun(l.T, "umount", "-l", dir)
		if err := l.m.Reload(context.Background()); err != nil {
			l.Error(err)
		}
	})
}

// fill leaves no byte in a folder's file system, crowd no inode.
func (l *lane) fill(dir string) {
	l.Helper()
	// No room in the last page of the journal either: a blank line is none.
	if info, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err == nil {
		blank := strings.Repeat(" ", 4095-int(info.Size()%4096)) + "\n"
		l.appendTo(filepath.Join(dir, "journal.jsonl"), blank)
	}
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		l.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		l.Fatal(err)
	}
}

func (l *lane) appendTo(path, text string) {
	l.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		l.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		l.Fatal(err)
	}
}

func (l *lane) crowd(dir string) {
	l.Helper()
	var err error
	for i := 0; err == nil; i++ {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("crowd%d", i)), []byte("x"), 0o644)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		l.Fatal(err)
	}
}

func (l *lane) readOnly(dir string) {
	l.Helper()
	mustRun(l.T, "mount", "-o", "remount,ro", dir)
}

// move moves a folder away until the end of the test.
func (l *lane) move(dir string) {
	l.Helper()
	if err := os.Rename(dir, dir+".away"); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".away", dir)); err != nil {
			l.Error(err)
		}
	})
}
