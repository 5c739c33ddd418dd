package incident

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
)

func TestEarlierIncidents(t *testing.T) {
	dir := t.TempDir()
	begin, end := stageNow.Add(-time.Hour), stageNow.Add(-time.Minute)
	report := func(name, unit, pkg string, at time.Time) {
		putFile(t, filepath.Join(dir, name, reportName), fmt.Sprintf(`{"schema":1,"unit":%q,"event":"e-%s","signature":"nan-abort","ending":{"at":%q},
			"evidence":{"gathered_at":"2026-10-01T00:00:00Z","package":{"name":%q}}}`, unit, name, at.Format(time.RFC3339), pkg))
	}
	report("20261001T000000Z-llm", stageUnit, "hrx-aaaaaaa", stageNow.Add(-20*24*time.Hour))
	report("20261002T000000Z-coder", "coder.service", "hrx-ccccccc", stageNow.Add(-19*24*time.Hour))
	report("20261003T000000Z-other", "other.service", "vulkan-ccccccc", stageNow.Add(-18*24*time.Hour))
	report(stagingPrefix+"1", stageUnit, "hrx-aaaaaaa", stageNow)
	putFile(t, filepath.Join(dir, "20261004T000000Z-torn", reportName), `{"schema":1,"unit":`)
	putFile(t, filepath.Join(dir, "20261005T000000Z-foreign", reportName), `{"plan":1}`)
	putFile(t, filepath.Join(dir, "20261007T000000Z-later", reportName), `{"schema":99,"unit":["a"]}`)
	putFile(t, filepath.Join(dir, "note.txt"), "a file")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "20261006T000000Z-pipe"), 0o700), os.Symlink("/dev/zero", filepath.Join(dir, "20261006T000000Z-pipe", reportName))); err != nil {
		t.Fatal(err)
	}
	s := &stageHost{
		inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit, Armed: &fleet.Armed{Package: "hrx-bbbbbbb", Path: "/data/1bit-hrx-bbbbbbb"}}},
		packages:   []*store.Package{stagePackage("hrx-bbbbbbb", "", begin)},
	}
	s.life("a", begin, end, "abort")
	e := s.gather(t, func(o *GatherOptions) { o.Incidents = dir })
	if len(e.Earlier) != 2 || e.Earlier[0].Unit != "coder.service" || e.Earlier[1].Unit != stageUnit ||
		e.Earlier[1].Event != "e-20261001T000000Z-llm" || e.Earlier[1].Folder != filepath.Join(dir, "20261001T000000Z-llm") || !e.Earlier[1].At.Equal(stageNow.Add(-20*24*time.Hour)) {
		t.Errorf("%+v", e.Earlier)
	}
	if missing := strings.Join(e.Missing, "\n"); strings.Count(missing, "earlier incidents:") != 4 || !strings.Contains(missing, "later/incident.json: a newer program wrote it (schema 99, this one knows 1)") {
		t.Errorf("missing: %s", missing)
	}
	// A report of the same end is none of an earlier one, and two of another are one.
	again := func(name, event string) {
		putFile(t, filepath.Join(dir, name, reportName), fmt.Sprintf(`{"schema":1,"unit":%q,"event":%q,"signature":"x","ending":{"at":%q}}`, stageUnit, event, end.Format(time.RFC3339)))
	}
	again("20261007T000000Z-own", Analyse(e).Event)
	again("20261007T000001Z-twice", "e-20261001T000000Z-llm")
	if e := s.gather(t, func(o *GatherOptions) { o.Incidents = dir }); len(e.Earlier) != 2 {
		t.Errorf("%+v", e.Earlier)
	}
	all, _, err := List(dir)
	if err != nil || len(all) != 4 || all[3].Again != 1 || !strings.HasSuffix(all[3].Folder, "Z-llm") {
		t.Errorf("%+v, %v", all, err)
	}
	// None were written yet.
	if e := s.gather(t, func(o *GatherOptions) { o.Incidents = filepath.Join(dir, "none") }); len(e.Earlier) > 0 || len(e.Missing) > 0 {
		t.Errorf("%v %q", e.Earlier, e.Missing)
	}
}

func FuzzEarlier(f *testing.F) {
	f.Add([]byte(`{"schema":1,"unit":"a.service","ending":{"at":"2026-10-23T10:45:12Z"},"evidence":{"package":null}}`))
	f.Add([]byte(`{"schema":1,"unit":"a","ending":null,"evidence":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := parseEarlier(b); err == nil && x.Unit == "" {
			t.Errorf("%q is one of no unit", b)
		}
	})
}
