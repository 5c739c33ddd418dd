package fleet

import (
	"slices"
	"strings"
)

// telling are the keys of a service that decide whether it starts, stays up and comes back, by section. They are no full
// list of systemd's, which grows with every version: what looks like none of them is not judged.
var telling = map[string][]string{
	"Unit": {"Description", "After", "Before", "Wants", "Requires", "BindsTo", "PartOf", "Conflicts", "OnFailure", "StartLimitBurst", "StartLimitIntervalSec"},
	"Service": {
		"Type", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost", "ExecReload", "Restart", "RestartSec", "RestartPreventExitStatus",
		"TimeoutStartSec", "TimeoutStopSec", "TimeoutSec", "RuntimeMaxSec", "WatchdogSec", "NotifyAccess", "Environment", "EnvironmentFile", "UnsetEnvironment",
		"PassEnvironment", "User", "Group", "SupplementaryGroups", "WorkingDirectory", "MemoryMax", "MemoryHigh", "LimitNOFILE", "LimitMEMLOCK", "OOMPolicy",
		"OOMScoreAdjust", "KillMode", "KillSignal", "StandardOutput", "StandardError", "PrivateDevices", "ProtectHome", "Slice", "Nice",
	},
	"Install": {"WantedBy", "RequiredBy", "Alias", "Also"},
}

// older are keys that systemd still reads and that are one letter from a telling one (systemd --dump-configuration-items).
var older = []string{"BindTo"}

// misspelt is the key that a line most likely means, "" where it is one of systemd's, or nobody knows: systemd tells
// capitals apart, and passes over a key that it does not know.
func misspelt(section, key string) string {
	keys := telling[section]
	if strings.HasPrefix(key, "X-") || slices.Contains(keys, key) || slices.Contains(older, key) {
		return ""
	}
	for _, right := range keys {
		if strings.EqualFold(key, right) || len(right) > 4 && oneSlip(key, right) {
			return right
		}
	}
	return ""
}

// oneSlip tells whether two words differ by one letter that is missing, too many or another, or by two that changed places.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 1:
		return a[i:] == b[i+1:]
	case 0:
		return i < len(a) && (a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	}
	return false
}
