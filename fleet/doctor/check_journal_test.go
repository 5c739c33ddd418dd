package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/systemd"
)

// found collects what a check adds.
func found(out *[]Finding) adder {
	return func(where, remedy, what string, args ...any) {
		*out = append(*out, Finding{Where: where, What: fmt.Sprintf(what, args...), Remedy: remedy})
	}
}

func TestJournalStorage(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // place and kind of the finding
	}{
		"nothing said, no folder":      {map[string]string{"etc/systemd/journald.conf": "[Journal]\n#Storage=auto\n"}, "/var/log/journal: in memory"},
		"nothing said, a folder":       {map[string]string{"var/log/journal/x": ""}, ""},
		"persistent makes its folder":  {map[string]string{"etc/systemd/journald.conf": "[Journal]\nStorage=persistent\n"}, ""},
		"a level that drops all":       {map[string]string{"etc/systemd/journald.conf": "[Journal]\nStorage=persistent\nMaxLevelStore=err\n"}, "journald.conf:3: drops"},
		"a level that drops nothing":   {map[string]string{"etc/systemd/journald.conf": "[Journal]\nStorage=persistent\nMaxLevelStore=info\n"}, ""},
		"volatile":                     {map[string]string{"etc/systemd/journald.conf": "[Journal]\nStorage=volatile\n", "var/log/journal/x": ""}, "journald.conf:2: in memory"},
		"none in a drop-in":            {map[string]string{"usr/lib/systemd/journald.conf.d/90.conf": "[Journal]\nStorage=none\n", "var/log/journal/x": ""}, "90.conf:2: nothing"},
		"a later drop-in wins":         {map[string]string{"etc/systemd/journald.conf.d/10.conf": "[Journal]\nStorage=none\n", "usr/lib/systemd/journald.conf.d/90.conf": "[Journal]\nStorage=persistent\n"}, ""},
		"the stronger of one name":     {map[string]string{"etc/systemd/journald.conf.d/50.conf": "[Journal]\nStorage=persistent\n", "run/systemd/journald.conf.d/50.conf": "[Journal]\nStorage=none\n"}, ""},
		"the file that comes with it":  {map[string]string{"usr/lib/systemd/journald.conf": "[Journal]\nStorage=none\n", "var/log/journal/x": ""}, "journald.conf:2: nothing"},
		"that of /etc in its place":    {map[string]string{"usr/lib/systemd/journald.conf": "[Journal]\nStorage=none\n", "etc/systemd/journald.conf": "", "var/log/journal/x": ""}, ""},
		"another section has no force": {map[string]string{"etc/systemd/journald.conf": "[Other]\nStorage=none\n", "var/log/journal/x": ""}, ""},
	} {
		root := t.TempDir()
		for path, text := range tt.files {
			path = filepath.Join(root, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		var out []Finding
		if err := (&look{Options: Options{Root: root}}).journalStorage(found(&out)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		where, what, _ := strings.Cut(tt.want, ": ")
		switch {
		case tt.want == "" && len(out) > 0, tt.want != "" && len(out) != 1:
			t.Errorf("%s: found %+v, want %q", name, out, tt.want)
		case tt.want != "" && (!strings.HasSuffix(out[0].Where, where) || !strings.Contains(out[0].What, what) || out[0].Remedy == ""):
			t.Errorf("%s: found %+v, want %q", name, out, tt.want)
		}
	}
}

// A FIFO among journald's files hangs nobody, and nothing is known then.
func TestJournalStorageOfAFIFO(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "etc/systemd/journald.conf.d")
	if err := errors.Join(os.MkdirAll(dir, 0o755), syscall.Mkfifo(filepath.Join(dir, "x.conf"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out []Finding
	if err := (&look{Options: Options{Root: root}}).journalStorage(found(&out)); !errors.Is(err, procfs.ErrNoFile) || len(out) > 0 {
		t.Errorf("found %+v, %v", out, err)
	}
}

// A look that waits for what heeds no context ends with the first signal all the same.
func TestRunEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "proc"), 0o755), os.WriteFile(filepath.Join(root, "proc/stat"), []byte("btime 1790000000\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{Root: root, Journal: func(context.Context, systemd.JournalQuery, func(systemd.Entry) error) ([]string, error) {
		cancel()
		select {}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSuppressed(t *testing.T) {
	l := &look{services: func() ([]service, error) {
		var s service
		s.Inspection.Service = fleet.Service{Unit: "llm.service", Scope: systemd.ScopeUser}
		s.where = "llm.service"
		return []service{s}, nil
	}}
	l.Journal = func(_ context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) ([]string, error) {
		for unit, n := range map[string]string{"llm.service": "40", "other.service": "7"} {
			if err := f(systemd.Entry{ID: systemd.IDSuppressed, Unit: unit, Fields: map[string]string{"N_DROPPED": n}}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	l.Root = t.TempDir()
	var out []Finding
	if err := l.suppressed(t.Context(), found(&out)); err == nil || len(out) > 0 {
		t.Errorf("where /proc does not say when the machine was started: %+v, %v", out, err)
	}
	if err := errors.Join(os.Mkdir(l.path("proc"), 0o755), os.WriteFile(l.path("proc/stat"), []byte("btime 1790000000\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := l.suppressed(t.Context(), found(&out)); err != nil || len(out) != 1 || out[0].Where != "llm.service" || !strings.Contains(out[0].Remedy, "RateLimitBurst=") {
		t.Errorf("found %+v, %v", out, err)
	}
	l.Journal = func(context.Context, systemd.JournalQuery, func(systemd.Entry) error) ([]string, error) {
		return nil, systemd.ErrNoJournal
	}
	out = nil
	if err := l.suppressed(t.Context(), found(&out)); !errors.Is(err, systemd.ErrNoJournal) || len(out) > 0 {
		t.Errorf("of a journal that may not be read: %+v, %v", out, err)
	}
}
