package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// What status warns of is what was found, in the same order.
func TestWarningsAreFindings(t *testing.T) {
	s := &Service{Unit: "llm.service"}
	s.find("hold", "lift it", "it is held by %s", "ai")
	s.add(Finding{Check: "quoting", Where: at("/etc/a.conf", 3), What: "/etc/a.conf:3: bad"})
	s.precede([]string{"a switch was finished"})
	var texts []string
	for _, f := range s.findings {
		if f.Unit != s.Unit {
			t.Errorf("finding of %q", f.Unit)
		}
		texts = append(texts, f.String())
	}
	if want := []string{"a switch was finished", "it is held by ai: lift it", "/etc/a.conf:3: bad"}; !slices.Equal(texts, want) || !slices.Equal(s.Warnings, want) {
		t.Errorf("findings %q, warnings %q", texts, s.Warnings)
	}
}

// A package can be put in place again under the process that runs from it.
func TestProcessOfReplacedPackage(t *testing.T) {
	st := store.Open(filepath.Join(t.TempDir(), "share"), filepath.Join(t.TempDir(), "state"))
	folder := filepath.Join(st.Dir, "1bit-hrx-aaa0001")
	program := filepath.Join(folder, "hrx/llama/bin/llama-server")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("new"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := &Host{Scope: systemd.ScopeUser, Store: st, UnitDir: t.TempDir(), StateDir: t.TempDir(), Now: time.Now}
	for _, tt := range []struct {
		exe, want string
		gone      bool
	}{
		{exe: program},
		{exe: program + deletedSuffix, want: "the package was replaced under it"},
		{exe: program + deletedSuffix, want: "which is no longer there", gone: true},
		{exe: "/usr/bin/1bit" + deletedSuffix}, // the front end of a host that was updated
	} {
		pl := h.place()
		if tt.gone {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
		live := liveOf([]procInfo{{pid: 7, exe: tt.exe, env: []string{"ONEBIT_LLAMA_SERVER=" + program}}}, 7, pl, nil)
		s := &Service{Unit: "llm.service", Live: live}
		u := &systemd.Unit{ID: s.Unit, ActiveState: "active", SubState: "running", Restart: "always"}
		h.warnings(&view{loaded: u, disk: u, settings: &systemd.Settings{}, place: pl, same: true}, s, PackageRef{})
		var found []string
		for _, f := range s.findings {
			if f.Check == "package-gone" {
				found = append(found, f.What)
			}
		}
		if got := strings.Join(found, "\n"); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.exe, got, tt.want)
		}
		if tt.gone {
			if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}
