package incident

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/systemd"
)

func sampleEvidence() *Evidence {
	at := time.Date(2026, 10, 23, 10, 45, 12, 963920000, time.UTC)
	return &Evidence{
		Unit: "1bit-canonical.service", Scope: systemd.ScopeUser, Host: "strixhalo", GatheredAt: at, Ended: &at,
		Files:   []UnitFile{{Path: "/home/x/.config/systemd/user/1bit-canonical.service", Text: "[Service]\n"}, {Path: "/x/../hrx.conf", Text: "[Service]\nX=(masked)\n", Masked: 1}},
		Command: []string{"1bit", "serve"},
		Kernel:  []gpu.Event{{Kind: gpu.KindReset, Fault: true, At: at, Text: "GPU reset begin!"}},
		Entries: []systemd.Entry{
			{At: at, Boot: "b", Monotonic: 5 * time.Second, Cursor: "s=1;i=a", Message: "plain", Unit: "u.service", Invocation: "i", Identifier: "llama-server", PID: 7, Priority: 6,
				Fields: map[string]string{"_SYSTEMD_USER_UNIT": "u.service", "_SYSTEMD_INVOCATION_ID": "i", "_EXE": "/x"}},
			{At: at.Add(time.Second), Cursor: "s=1;i=b", Message: "caf\xe9\x00", Missing: "not all of it", Priority: -1, Fields: map[string]string{}},
			{At: at.Add(2 * time.Second), Cursor: "s=1;i=c", ID: systemd.IDProcessExited, Priority: 5, Fields: map[string]string{"EXIT_CODE": "exited", "EXIT_STATUS": "1"}},
		},
		Kernels:  []systemd.Entry{{At: at, Cursor: "k", Message: "amdgpu: GPU reset begin!", Priority: 3, Fields: map[string]string{"_TRANSPORT": "kernel"}}},
		Actions:  []json.RawMessage{json.RawMessage(`{"id":1}`)},
		Manifest: []byte("{}\n"),
	}
}

func TestWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "incidents", "20261023T104512Z-1bit-canonical")
	e := sampleEvidence()
	if err := Write(dir, e, Analyse(e)); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Actions {
		var b bytes.Buffer
		if err := json.Compact(&b, got.Actions[i]); err != nil {
			t.Fatal(err)
		}
		got.Actions[i] = b.Bytes()
	}
	if d := cmp.Diff(e, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Analyse(e).Markdown(), Analyse(got).Markdown()); d != "" {
		t.Errorf("the report of what was read is another: %s", d)
	}
	var names []string
	err = filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if info, ierr := d.Info(); err == nil && ierr == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others", path)
		}
		if !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	want := []string{"incident.json", "incident.md", "raw/1bit-package.json", "raw/actions.json", "raw/evidence.json", "raw/journal.jsonl", "raw/kernel.jsonl", "raw/unit/00-1bit-canonical.service", "raw/unit/01-hrx.conf"}
	if d := cmp.Diff(want, names); d != "" || err != nil {
		t.Error(d, err)
	}
	// What is there stays as it is.
	before, err := os.ReadFile(filepath.Join(dir, "incident.md"))
	if err != nil {
		t.Fatal(err)
	}
	e.Unit = "other.service"
	if err := Write(dir, e, Analyse(e)); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "incident.md")); err != nil || !bytes.Equal(before, after) {
		t.Error("it was written over", err)
	}
}

// A folder that cannot be finished is not there, and what a crash left is swept with the next one; one that somebody
// still writes is not.
func TestWriteIsWhole(t *testing.T) {
	parent := t.TempDir()
	e := sampleEvidence()
	left, unlock, err := stage(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "incident.md"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := []string{stagingPrefix + "archive/old", stagingPrefix + "12/notes", ".incident-archive/old", ".incident-34/raw"} // somebody's
	for _, name := range foreign {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(filepath.Join(parent, "a"), e, Analyse(e)); err != nil {
		t.Fatal(err)
	}
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(parent, name)); err != nil {
			t.Error("what was somebody's is gone: ", err)
		}
	}
	if _, err := os.Stat(left); err != nil {
		t.Error("a folder that is being written was removed: ", err)
	}
	unlock()
	if err := Write(filepath.Join(parent, "b"), e, Analyse(e)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what a crash left is still there: ", err)
	}
	// A file in the way, where a folder is needed.
	if err := os.WriteFile(filepath.Join(parent, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(parent, "file", "c"), e, Analyse(e)); err == nil {
		t.Error("it was written below a file")
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 3+len(foreign) {
		t.Errorf("%v %v", entries, err)
	}
}

// What is not as it was written is refused, or said where it is whole all the same.
func TestReadDamaged(t *testing.T) {
	evidence := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }
	}
	text := func(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
	for _, test := range []struct {
		name, file string
		change     func([]byte) []byte // nil: it is removed
		want       string
	}{
		{"no evidence", "raw/evidence.json", nil, "is no folder of an incident, which has raw/evidence.json"},
		{"torn evidence", "raw/evidence.json", text(`{"unit":"a`), "evidence.json: unexpected end"},
		{"other JSON", "raw/evidence.json", text(`{"plan":1}`), "it is none of an incident"},
		{"nothing in it", "raw/evidence.json", text(`{"schema":1}`), "is no evidence of an incident"},
		{"a newer schema", "raw/evidence.json", evidence(`"schema": 1`, `"schema": 99`), "a newer program wrote it (schema 99, this one knows 1)"},
		{"a newer schema of another form", "raw/evidence.json", text(`{"schema":2,"unit":["a"]}`), "a newer program wrote it (schema 2, this one knows 1)"},
		{"a file outside", "raw/evidence.json", evidence(`"raw/actions.json"`, `"../actions.json"`), "names a file outside"},
		{"torn log", "raw/journal.jsonl", func(b []byte) []byte { return b[:len(b)-20] }, "raw/journal.jsonl:3: read an entry"},
		{"cut log", "raw/journal.jsonl", func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] }, "is not whole: raw/journal.jsonl has 1 entries, and 3 were written"},
		{"empty log", "raw/journal.jsonl", text(""), "raw/journal.jsonl has 0 entries, and 3"},
		{"no log", "raw/journal.jsonl", nil, "is not whole: raw/journal.jsonl is missing"},
		{"no log of the kernel", "raw/kernel.jsonl", nil, "is not whole: raw/kernel.jsonl is missing"},
		{"no manifest", "raw/1bit-package.json", nil, "is not whole: raw/1bit-package.json is missing"},
		{"torn actions", "raw/actions.json", text("{"), "raw/actions.json:unexpected end"},
		{"somebody took out a word", "raw/journal.jsonl", evidence("plain", "(gone)"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a")
			e := sampleEvidence()
			if err := Write(dir, e, Analyse(e)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, test.file)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.Remove(path)
			}
			if test.change != nil {
				err = errors.Join(err, os.WriteFile(path, test.change(b), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(dir)
			switch {
			case test.want != "":
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
			case err != nil || len(got.Missing) != 1 || !strings.Contains(got.Missing[0], "raw/journal.jsonl was when it was written: somebody changed it"):
				t.Errorf("%v %v", got, err)
			}
		})
	}
}

// Reports that are written at once, or within one second, are all there.
func TestWriteFree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "incidents", "20261023T104512Z-llm.service")
	const writers = 6
	var group errgroup.Group
	folders, refused := make([]string, writers), make([]error, writers)
	for i := range writers {
		group.Go(func() (err error) {
			e := sampleEvidence()
			folders[i], err = WriteFree(dir, e, Analyse(e))
			refused[i] = Write(dir, e, Analyse(e))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(folders)
	var want []string
	for i := range writers {
		want = append(want, dir)
		if i > 0 {
			want[i] += fmt.Sprintf("-%d", i+1)
		}
		if _, err := Read(want[i]); err != nil {
			t.Error(err)
		}
		if err := refused[i]; !errors.Is(err, fs.ErrExist) || !strings.HasSuffix(err.Error(), "name another folder") {
			t.Errorf("without a free name: %v", err)
		}
	}
	if d := cmp.Diff(want, folders); d != "" {
		t.Error(d)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), stagingPrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// What is written as an entry is read as the same.
func FuzzEntryRoundTrip(f *testing.F) {
	f.Add(int64(1), "message", "", "llama-server", 1, 3, "_EXE", "/x")
	f.Add(int64(1792750000000000), "\xff\x00", "missing", "", 0, -1, "EXIT_CODE", "\xfe")
	f.Add(int64(1), "", "\xce", "\xb0", 0, -1, "_COMM", "")
	f.Fuzz(func(t *testing.T, us int64, message, missing, identifier string, pid, priority int, field, value string) {
		if us < 0 || us > 1<<52 || pid < 0 || pid > 1<<30 || priority < -1 || priority > 7 || !entryFields[field] {
			return
		}
		e := systemd.Entry{At: time.UnixMicro(us), Cursor: "c", Message: message, Missing: missing, Identifier: identifier, PID: pid, Priority: priority, Fields: map[string]string{field: value}}
		line, err := encodeEntry(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEntry(line)
		if err != nil {
			t.Fatal(err)
		}
		got.Unit, got.Invocation = "", "" // made of fields
		if d := cmp.Diff(e, got); d != "" {
			t.Error(d)
		}
	})
}
