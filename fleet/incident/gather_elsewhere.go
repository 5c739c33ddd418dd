package incident

import (
	"fmt"
	"slices"
	"strings"
)

// elsewhere says where the unit's own settings keep its log, or a part of it, out of the journal.
func (g *gatherer) elsewhere() {
	if g.service == nil || g.service.Settings == nil {
		return
	}
	for _, key := range []string{"StandardOutput", "StandardError", "LogNamespace", "LogLevelMax"} {
		set := g.service.Settings.Last("Service", key)
		value := set.Line.Value
		if value == "" || set.Unsure != "" {
			continue
		}
		var why string
		switch kind, _, _ := strings.Cut(value, "+"); {
		case key == "LogNamespace":
			why = fmt.Sprintf("its log is in a journal of its own: journalctl --namespace=%s", value)
		case key == "LogLevelMax":
			why = "what is of lesser priority is not kept, which may be all that the server writes"
		case slices.Contains([]string{"journal", "kmsg", "syslog", "inherit"}, kind):
			continue
		default:
			why = "what the service writes there is not in the journal"
		}
		g.e.Gaps = append(g.e.Gaps, fmt.Sprintf("%s=%s: %s", key, value, why))
	}
}
