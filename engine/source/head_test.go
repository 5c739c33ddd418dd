package source_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Filters of the checkout's configuration are programs of it, in a submodule too.
func TestHeadRunsNoFilters(t *testing.T) {
	sub := newRepo(t)
	sub.write(".gitattributes", "* filter=evil\n")
	sub.commit("s", "s\n", "in the submodule")
	r := newRepo(t)
	r.write(".gitattributes", "* filter=evil merge=evil\n")
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.dir, "sub")
	begin(r)
	head := r.head()
	ran := filepath.Join(t.TempDir(), "ran")
	script := "touch " + ran + "; cat"
	for _, c := range []*repo{r, r.at(filepath.Join(r.dir, "sub"))} {
		c.git("config", "core.fsmonitor", "touch "+ran+"; false")
	}
	for _, how := range []string{"clean", "process"} {
		for _, c := range []*repo{r, r.at(filepath.Join(r.dir, "sub"))} {
			c.try("config", "--remove-section", "filter.evil")
			c.git("config", "filter.evil."+how, script)
			c.git("config", "filter.evil.required", "true")
		}
		r.write("kernel.c", text("one", "TWO", "three")) // the same, with another time
		r.write("sub/s", "s\n")
		os.Remove(ran)
		commit, dirty, err := r.open().Head(context.Background())
		if err != nil || commit != head || len(dirty) > 0 {
			t.Errorf("%s: %s, %q, %v", how, commit, dirty, err)
		}
		if _, err := os.Lstat(ran); err == nil {
			t.Errorf("%s: a program of the checkout ran", how)
		}
		r.try("-c", "core.fsmonitor=false", "status")
		if _, err := os.Lstat(ran); err != nil {
			t.Fatalf("%s: git by itself runs nothing either: %v", how, err)
		}
	}
}

// Merging again, to see what a merge should have been, runs no driver.
func TestCarriesRunsNoMergeDriver(t *testing.T) {
	r := newRepo(t)
	r.write(".gitattributes", "*.c merge=evil\n")
	fix := onRelease(r)
	r.commit("kernel.c", text("one", "two", "THREE"), "another line")
	r.git("merge", "-q", "--no-edit", "main")
	ran := filepath.Join(t.TempDir(), "ran")
	r.git("config", "merge.evil.driver", "touch "+ran)
	before := r.git("count-objects", "-v")
	check(t, r, map[string]string{}, r.head(), fix, yes, "ancestor of the pin")
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the checkout ran")
	}
	if after := r.git("count-objects", "-v"); after != before {
		t.Errorf("objects were written: %s, before %s", after, before)
	}
	r.try("merge-tree", "--write-tree", "HEAD^1", "HEAD^2")
	if _, err := os.Lstat(ran); err != nil {
		t.Fatalf("git by itself runs nothing either: %v", err)
	}
}

// Size and times alike, and a configuration that asks for no more.
func TestHeadComparesContents(t *testing.T) {
	r := newRepo(t)
	head := r.commit("a", "hello", "one")
	r.git("config", "core.trustctime", "false")
	r.git("config", "core.checkStat", "minimal")
	then := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	old := func() {
		if err := os.Chtimes(filepath.Join(r.dir, "a"), then, then); err != nil {
			t.Fatal(err)
		}
	}
	old()
	r.git("update-index", "--refresh")
	r.write("a", "jello")
	old()
	if seen := r.git("status", "--short"); seen != "" {
		t.Fatalf("git sees %q by itself: this tests nothing", seen)
	}
	commit, dirty, err := r.open().Head(context.Background())
	if err != nil || commit != head || !cmp.Equal(dirty, []string{"a"}) {
		t.Errorf("got %s, %q, %v", commit, dirty, err)
	}
}

// What the index holds counts even where the disk has the commit's file.
func TestHeadStagedAlone(t *testing.T) {
	r := newRepo(t)
	r.commit("a", "one\n", "one")
	r.write("a", "two\n")
	r.git("add", "a")
	r.write("a", "one\n")
	if _, dirty, err := r.open().Head(context.Background()); err != nil || !cmp.Equal(dirty, []string{"a"}) {
		t.Errorf("got %q, %v", dirty, err)
	}
}

// The form of files on disk is the checkout's own matter.
func TestHeadLineEnds(t *testing.T) {
	r := newRepo(t)
	r.commit("a", "one\ntwo\n", "one")
	r.write("a", "one\r\ntwo\r\n")
	for _, set := range []func(){
		func() { r.git("config", "core.autocrlf", "true") },
		func() {
			r.git("config", "core.autocrlf", "false")
			r.write(".git/info/attributes", "a text eol=crlf\n")
		},
	} {
		if _, dirty, err := r.open().Head(context.Background()); err != nil || !cmp.Equal(dirty, []string{"a"}) {
			t.Errorf("without: got %q, %v", dirty, err)
		}
		set()
		if _, dirty, err := r.open().Head(context.Background()); err != nil || len(dirty) > 0 {
			t.Errorf("got %q, %v", dirty, err)
		}
		r.git("config", "core.autocrlf", "false")
	}
}

// A submodule of a submodule, and one that is not checked out.
func TestHeadNestedSubmodules(t *testing.T) {
	inner, middle, r := newRepo(t), newRepo(t), newRepo(t)
	inner.commit("i", "i\n", "inner")
	middle.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.dir, "inner")
	middle.commitAll("middle")
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", middle.dir, "middle")
	head := r.commitAll("outer")
	look := func(want ...string) {
		t.Helper()
		commit, dirty, err := r.open().Head(context.Background())
		if err != nil || commit != head || !cmp.Equal(dirty, want) && len(dirty)+len(want) > 0 {
			t.Errorf("got %s, %q, %v, want %q", commit, dirty, err, want)
		}
	}
	look()
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	look()
	r.write("middle/inner/i", "changed\n")
	look("middle")
}
