package incident

import (
	"strings"
	"testing"
	"time"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, v1.2": "plain text, v1.2", "a_b*c": `a\_b\*c`, "<b>": `\<b\>`, "@one": "&#64;one", "#1 a#1": `\#1 a#1`,
		"- x": `\- x`, "12. x": `12\. x`, "a\x1b[2J\nb": `a\\x1b\[2J\\nb`, "`": "\\`", "é": "é",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"a": "`a`", "a`b": "``a`b``", "`": "`` ` ``", "": "–", "a|b*": `<code>a\|b\*</code>`, "a\nb": "`a\\nb`", ` a`: "`  a `",
	} {
		if got := code(in); got != want {
			t.Errorf("code(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLinkLeadsNowhereElse(t *testing.T) {
	for url, want := range map[string]string{
		"https://github.com/o/r/actions/runs/7": "[7](https://github.com/o/r/actions/runs/7)",
		"javascript:alert(1)":                   "7", "https://x/) [evil](https://y": "7", "http://x/": "7", "https://x/\x1b": "7", "": "7",
	} {
		if got := link("7", url); got != want {
			t.Errorf("link(%q) = %q, want %q", url, got, want)
		}
	}
}

// Times are in the host's zone, and where it is not known in UTC.
func TestClock(t *testing.T) {
	at := time.Date(2026, 10, 24, 1, 2, 3, 0, time.UTC)
	for zone, want := range map[string]string{
		"America/Halifax": "2026-10-23 22:02:03 ADT (2026-10-24 01:02:03Z)",
		"Europe/Berlin":   "2026-10-24 03:02:03 CEST (01:02:03Z)",
		"":                "2026-10-24 01:02:03Z", "Nowhere/At_All": "2026-10-24 01:02:03Z", "../../etc/passwd": "2026-10-24 01:02:03Z", "Local": "2026-10-24 01:02:03Z",
	} {
		r := &Report{Evidence: &Evidence{Zone: zone}}
		if got := r.clock().time(at); got != want {
			t.Errorf("%q: %s, want %s", zone, got, want)
		}
	}
	for seconds, want := range map[float64]string{1.06: "1.1 s", 59.9: "59.9 s", 61: "1 min 01 s", 22026: "6 h 07 min", 200000: "2 d 7 h", -3: "-3.0 s"} {
		if got := length(seconds); got != want {
			t.Errorf("length(%v) = %s, want %s", seconds, got, want)
		}
	}
}

// Without a journal it is said what systemd itself tells, and what is not known.
func TestReportWithoutAJournal(t *testing.T) {
	at := time.Date(2026, 10, 23, 10, 0, 0, 0, time.UTC)
	started := at.Add(-time.Hour)
	e := &Evidence{Unit: testUnit, Missing: []string{"the journal: no journal to read"}}
	r := Analyse(e)
	if r.Ending != nil || !strings.Contains(r.Summary, "Nothing is known of an end") || !strings.Contains(r.Markdown(), "- the journal: no journal to read") {
		t.Errorf("%s\n%s", r.Summary, r.Markdown())
	}
	e.State = UnitState{Result: "signal", MainCode: 2, MainStatus: 9, MainStarted: &started, MainExited: &at, Invocation: "a"}
	if r := Analyse(e); r.Ending == nil || r.Ending.Signal != "SIGKILL" || *r.Ending.UptimeS != 3600 || r.Event != "a@20261023T100000Z" {
		t.Errorf("%+v", r.Ending)
	}
	e.State.MainCode, e.State.MainStatus = 3, 11
	if r := Analyse(e); r.Ending == nil || r.Ending.Code != "dumped" || r.Signature != "sigsegv" {
		t.Errorf("%+v", r.Ending)
	}
	e.State.Result = "success"
	if r := Analyse(e); r.Ending != nil {
		t.Errorf("%+v", r.Ending)
	}
	later := at.Add(time.Second) // it runs again
	e.State.Result, e.State.MainStarted = "signal", &later
	if r := Analyse(e); r.Ending != nil {
		t.Errorf("%+v", r.Ending)
	}
}

// A signature is the same for the same kind of end, whatever the day, the process and the package.
func TestSignatureIsOfTheKind(t *testing.T) {
	die := func(pid, day string) string {
		text := strings.ReplaceAll("== a boot "+day+serverStart+`
			10:00:05.0 1bit[20] /home/a/src/ggml/src/ggml-hrx.cpp:99: GGML_ASSERT(x) failed
			10:00:05.0 1bit[20] /p/1bit-hrx-1/llama-server(_ZN2ns3runEv+0x1) [0x7f]
			10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT`, "[20]", "["+pid+"]")
		return Analyse(&Evidence{Unit: testUnit, Entries: entriesOf(t, text, false)}).Signature
	}
	if a, b := die("20", "2026-10-23"), die("4711", "2026-11-01"); a != b || a != "abort ggml-hrx.cpp ns::run" {
		t.Errorf("%q and %q", a, b)
	}
}
