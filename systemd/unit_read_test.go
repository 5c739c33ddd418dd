package systemd

import (
	"math"
	"testing"
	"time"

	godbus "github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestUnitName(t *testing.T) {
	tests := []struct {
		name, want string
		valid      bool
	}{
		{"llm", "llm.service", true},
		{"llm.service", "llm.service", true},
		{"qwen2.5", "qwen2.5.service", true},
		{`llm@gpu\x2d0`, `llm@gpu\x2d0.service`, true},
		{"-x", "-x.service", true},
		{"llm.timer", "llm.timer", true},
		{"llm@", "llm@.service", false},
		{"@x", "@x.service", false},
		{"", ".service", false},
		{"a/b", "a/b.service", false},
		{"a b", "a b.service", false},
		{"é", "é.service", false},
	}
	for _, test := range tests {
		got := unitName(test.name)
		if got != test.want || validUnitName(got) != test.valid {
			t.Errorf("%q: %q, valid %v", test.name, got, validUnitName(got))
		}
	}
}

// TestDecodeUnit has what a real unit rarely shows, and properties of types that are not theirs.
func TestDecodeUnit(t *testing.T) {
	variants := func(values map[string]any) map[string]godbus.Variant {
		out := map[string]godbus.Variant{}
		for name, value := range values {
			out[name] = godbus.MakeVariant(value)
		}
		return out
	}
	got := decodeUnit(variants(map[string]any{
		"Id": "a.service", "Names": []string{"b.service", "a.service"}, "InvocationID": []byte{0, 0xff}, "NeedDaemonReload": true,
		"ActiveExitTimestamp": uint64(1_700_000_000_000_003), "UnitFileState": "enabled", "StartLimitBurst": uint32(5),
		"WantedBy": []string{"multi-user.target", "default.target"}, "UpheldBy": []string{"default.target"},
	}), variants(map[string]any{
		"MainPID": uint32(7), "NRestarts": uint32(3), "TimeoutStartUSec": uint64(math.MaxUint64), "TimeoutStopUSec": uint64(1_500_000),
		"ExecMainStartTimestamp": uint64(1_700_000_000_000_001), "ExecMainExitTimestamp": uint64(1_700_000_000_000_002), "Type": 5, "Environment": []any{1},
		"MemoryMax": uint64(64 << 20), "MemoryPeak": uint64(math.MaxUint64), "PrivateDevices": true, "ProtectHome": "tmpfs",
		"EnvironmentFiles": [][]any{{"/a", true}, {"short"}, {1, 2}},
		"ExecStart":        [][]any{{"/x", []string{"x", "-y"}, false}, {}},
	}))
	most := int64(64 << 20)
	want := &Unit{
		ID: "a.service", Names: []string{"b.service", "a.service"}, InvocationID: "00ff", NeedDaemonReload: true,
		MainPID: 7, NRestarts: 3, TimeoutStop: 1500 * time.Millisecond, MainStarted: time.UnixMicro(1_700_000_000_000_001),
		MainExited: time.UnixMicro(1_700_000_000_000_002), ActiveLeft: time.UnixMicro(1_700_000_000_000_003),
		UnitFileState: "enabled", StartLimitBurst: 5, WantedBy: []string{"default.target", "multi-user.target"},
		MemoryMax: &most, PrivateDevices: true, ProtectHome: "tmpfs",
		EnvironmentFiles: []EnvironmentFile{{Path: "/a", Optional: true}, {}},
		ExecStart:        []Command{{Path: "/x", Argv: []string{"x", "-y"}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Unit{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.service", "b.service"}, got.names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
