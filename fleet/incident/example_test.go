package incident_test

import (
	"fmt"
	"time"

	"github.com/1bit-systems/pkg/fleet/incident"
	"github.com/1bit-systems/pkg/systemd"
)

// A report is made of evidence alone.
func ExampleAnalyse() {
	at := time.Date(2026, 10, 23, 10, 45, 0, 0, time.UTC)
	systemdSays := func(after time.Duration, text string) systemd.Entry {
		return systemd.Entry{At: at.Add(after), Identifier: "systemd", Unit: "llm.service", Message: text}
	}
	r := incident.Analyse(&incident.Evidence{Unit: "llm.service", Host: "box", Entries: []systemd.Entry{
		systemdSays(0, "Started llm.service - a model."),
		systemdSays(90*time.Second, "llm.service: Main process exited, code=killed, status=11/SEGV"),
		systemdSays(90*time.Second, "llm.service: Failed with result 'signal'."),
		systemdSays(100*time.Second, "llm.service: Scheduled restart job, restart counter is at 1."),
	}})
	fmt.Println(r.Signature)
	fmt.Println(r.Summary)
	// Output:
	// sigsegv
	// llm.service on box ended at 2026-10-23 10:46:30Z, after 1 min 30 s. Cause: a crash (SIGSEGV). systemd restarted it, restart counter 1.
}
