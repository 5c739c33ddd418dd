package acceptance

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestReadHostFacts(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/sys/kernel/osrelease": "7.3.0-rc4-1bit-perfopt\n",
		"proc/loadavg":              "1.00 2.00 3.00 4/567 890\n",
		"proc/meminfo":              "MemTotal:       131072000 kB\nMemAvailable:   77594624 kB\n",
		"proc/vmstat":               "nr_free_pages 1\noom_kill 3\n",
		"proc/42/status":            "Name:\tllama\nRssAnon:\t  1024 kB\nVmSwap:\t  2048 kB\n",
		"sys/class/drm/card0/device/mem_info_gtt_used":  "107374182400\n",
		"sys/class/drm/card0/device/mem_info_gtt_total": "128849018880\n",
		"sys/class/drm/card1/device/mem_info_gtt_used":  "1073741824\n",
		"sys/class/drm/card2/device/mem_info_gtt_used":  "broken\n",
		"sys/module/amdgpu/parameters/cwsr_enable":      "0\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := readHostFacts(root)
	if f.Kernel != "7.3.0-rc4-1bit-perfopt" || *f.GTTUsedGiB != 101 || *f.GTTTotalGiB != 120 || *f.MemAvailableGiB != 74 || *f.CWSREnabled != "0" || *f.OOMKills != 3 {
		t.Errorf("%+v", f)
	}
	if mib := residentMiB(root, 42); mib == nil || *mib != 3 {
		t.Errorf("resident %v", mib)
	}
	none := readHostFacts(t.TempDir())
	if none.GTTUsedGiB != nil || none.MemAvailableGiB != nil || none.OOMKills != nil || residentMiB(root, 43) != nil {
		t.Errorf("without sensors: %+v", none)
	}
}

// A kill for memory explains what ends soon after it, and nothing that ended
// before the watch began or much later.
func TestOOMWatch(t *testing.T) {
	t0 := time.Date(2026, 8, 30, 12, 0, 0, 0, time.UTC)
	count := func(n int64) HostFacts { return HostFacts{OOMKills: &n} }
	steps := []struct {
		after time.Duration
		facts HostFacts
		want  bool
	}{
		{0, count(7), false}, // before the watch
		{time.Second, count(7), false},
		{2 * time.Second, count(8), true},
		{20 * time.Second, count(8), true},
		{40 * time.Second, count(8), false},
		{41 * time.Second, HostFacts{}, false}, // not to be read once
		{42 * time.Second, count(9), true},
	}
	var w oomWatch
	for _, s := range steps {
		if got := w.look(t0.Add(s.after), s.facts); got != s.want {
			t.Errorf("after %s: %v, want %v", s.after, got, s.want)
		}
	}
}
