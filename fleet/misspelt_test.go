package fleet

import "testing"

func TestMisspelt(t *testing.T) {
	for _, tt := range []struct{ section, key, want string }{
		{"Service", "restart", "Restart"},
		{"Service", "Restrt", "Restart"},
		{"Service", "Restarts", "Restart"},
		{"Service", "Retsart", "Restart"},
		{"Service", "RestartSecs", "RestartSec"},
		{"Service", "Enviroment", "Environment"},
		{"Service", "EnvironmentFiles", "EnvironmentFile"},
		{"Service", "execStart", "ExecStart"},
		{"Service", "type", "Type"},
		{"Install", "WantedBY", "WantedBy"},
		{"Unit", "Aftre", "After"},
		{"Unit", "Require", "Requires"},
		{"Unit", "BindTo", ""},
		{"Service", "Restart", ""},
		{"Service", "RestartMode", ""},
		{"Service", "RestartSteps", ""},
		{"Service", "ExecStop", ""},
		{"Service", "MemoryMin", ""},
		{"Service", "MemoryLow", ""},
		{"Service", "UMask", ""},
		{"Service", "X-Restrt", ""},
		{"Service", "Tipe", ""},
		{"X-Ours", "Restrt", ""},
	} {
		if got := misspelt(tt.section, tt.key); got != tt.want {
			t.Errorf("[%s] %s: %q, want %q", tt.section, tt.key, got, tt.want)
		}
	}
}

// No key that decides something is taken for a slip of another.
func TestMisspeltKnowsItsOwn(t *testing.T) {
	for section, keys := range telling {
		for _, key := range keys {
			if got := misspelt(section, key); got != "" {
				t.Errorf("[%s] %s is taken for %s", section, key, got)
			}
		}
	}
}
