package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/acceptance"
)

var began = time.Date(2026, 10, 25, 3, 0, 0, 0, time.UTC)

func value[T any](v T) *T { return &v }

// cleanRun is a run of four lives without a fault.
func cleanRun() *Report {
	v := &acceptance.Verdict{
		Verdict: acceptance.Pass, Plan: "default", Package: "hrx-3092596", PackageDigest: "sha256:" + strings.Repeat("a1", 32),
		Reason:         "0 faults in 60 server lives: the rate is at most 0.048703 per arm at 95 % confidence, the plan asks for 0.05",
		PlanFileSHA256: strings.Repeat("b2", 32), PlanSHA256: strings.Repeat("c3", 32), Primary: "arm", Requests: 1500,
		Arms:      acceptance.ArmCounts{Clean: 60, Invalid: 1},
		NotTested: []string{"uptime beyond 1m12s", "neighbours other than bench"},
		Bounds: acceptance.Bounds{
			ArmUpper95: 0.048703, RequestUpper95: 0.001995, RequestUpper95ICC01: 0.006767, RequestUpper95ICC05: 0.025629, WorstBinUpper95: 0.007957,
			NeverUsedSlotUpper95: 0.012405, PrimaryUpper: 0.048703, Confidence: 0.95, Hold: "each", HourUpper95: 3.2, ArmUpper95Joint: 0.059629,
			RequestUpper95Joint: 0.002456, AnytimeRequestUpper95: 0.00685, BinUpper95: map[int]float64{24: 0.007957, 300: 0.007957},
			SlotUpper95: map[int]float64{0: 0.007957, 1: 0.008},
		},
		Rows: []acceptance.ArmRow{{
			Name: "candidate", Role: "candidate", Build: "hrx-3092596, 10605 (86c33b5d5)", Parallel: 4, Neighbour: "bench, 812 runs", Lives: 60,
			Requests: 1500, OK: 1500, SlotsUsed: 4, NeverUsedSlots: 240, Selected: acceptance.Selected{LRU: 1500}, BusyShare: 0.82, MedianMS: 812,
			GTTBeforeGiB: value(99.1), GTTAfterGiB: value(99.3), States: acceptance.ArmCounts{Clean: 60},
		}},
		Table: []acceptance.FaceRow{{Face: "nan-wire", Setting: "gate", N: 1500, Unit: "request", Upper95: 0.001995}},
		Exposure: acceptance.Exposure{
			LoadSeconds: 3210, RequestsPerSecond: 0.47, LaunchesPerSlot: map[int]int{0: 380, 1: 372, 2: 376, 3: 372}, AllSlotsBusyShare: 0.82,
			Selected: acceptance.Selected{LRU: 1500}, TokensPredicted: 72000, TokensObserved: 72000, LatencyMS: acceptance.Latency{P50: 812, P99: 2100, Max: 3000},
			HostBefore: &acceptance.HostFacts{Kernel: "7.3.0", LoadAverage: "1.0", MemAvailableGiB: value(74.0)},
		},
		ArmStates: []acceptance.ArmState{{Arm: 7, State: "invalid", Reason: "invalid(port-taken)", Detail: "the port was taken by another program"}},
	}
	h := &acceptance.History{From: began, To: began.Add(time.Hour), P0: 0.05, Identities: []acceptance.NamedDigest{{What: "model", Name: "Qwen3-4B-Q4_K_M.gguf", Digest: "sha256:" + strings.Repeat("d4", 32)}}}
	for i := range 6 {
		from := began.Add(time.Duration(i) * 10 * time.Minute)
		h.Lives = append(h.Lives, acceptance.LifeSpan{Arm: i + 1, Name: "candidate", From: from, To: from.Add(9 * time.Minute)})
	}
	for i := range 1500 {
		at := began.Add(time.Duration(i) * 2400 * time.Millisecond)
		h.Answers = append(h.Answers, acceptance.AnswerAt{Seconds: float32(i) * 2.4, MS: float32(700 + 400*math.Abs(math.Sin(float64(i))))})
		if i%5 == 0 {
			h.Samples = append(h.Samples, acceptance.SampleAt{At: at, ServerMiB: value(400 + float64(i)/50), MemAvailableGiB: value(70.0)})
		}
	}
	h.Neighbours = []acceptance.NeighbourWork{{Kind: "bench", Runs: 812, Work: map[string]int64{"tokens": 412000}, Alive: 58 * time.Minute}}
	return &Report{v, h}
}

// faultyRun is a run with faults of two faces, one of them with hostile text.
func faultyRun() *Report {
	r := cleanRun()
	v := r.verdict
	v.Verdict, v.Reason = acceptance.Fail, "fault(nan-wire): null log-probability: 24 of 32 tokens"
	at := began.Add(31 * time.Minute)
	v.Faults = []acceptance.Fault{
		{Face: "nan-wire", Gates: true, Arm: 4, Request: value(218), Slot: value(2), At: at, Detail: hostile, Tasks: []acceptance.SlotTask{
			{Slot: 3, Task: 187, Request: value(217), Selected: "lru", PromptTokens: 175, Tokens: 29, GraphsReused: 190, FromUS: 367_000_000, ToUS: 369_000_000},
			{Slot: 2, Task: 218, Faulted: true, Request: value(218), Selected: "lru", NeverUsed: true, FromUS: 369_100_000},
		}},
		{Face: "crash", Gates: true, Arm: 4, At: at.Add(time.Minute), Detail: "signal 11 (segmentation fault)"},
	}
	v.Table = append(v.Table, acceptance.FaceRow{Face: "crash", Setting: "gate", N: 60, Unit: "arm", Seen: 1, Upper95: 0.0766, First: &at, Excerpt: hostile})
	v.Fisher = &acceptance.Fisher{CandidateFaults: 6, CandidateLives: 60, ControlLives: 60, TwoSided: 0.027412, Less: 1, Greater: 0.013706}
	for i, f := range v.Faults {
		r.history.Findings = append(r.history.Findings, acceptance.FindingAt{At: f.At, Arm: 4, Face: f.Face, Fault: true, Detail: f.Detail},
			acceptance.FindingAt{At: f.At.Add(time.Duration(i) * time.Minute), Arm: 4, Face: "text", Detail: "16 replacement characters"})
	}
	return r
}

// emptyRun never got to a request.
func emptyRun() *Report {
	return &Report{
		&acceptance.Verdict{Verdict: acceptance.Inconclusive, Plan: "none", Reason: "no server was started", Primary: "request",
			Bounds: acceptance.Bounds{PrimaryUpper: 1, ArmUpper95: 1, RequestUpper95: 1}},
		&acceptance.History{From: began, To: began},
	}
}

const hostile = `<script>alert("x")</script> | [x](javascript:1) @somebody ` + "`\x01\u202e" + ` <img src=//127.0.0.1/x>`

// A report is the same bytes whenever it is made, and nothing that came from a
// server is anything but text in it.
func TestReportIsSelfContained(t *testing.T) {
	for name, make := range map[string]func() *Report{"clean": cleanRun, "faulty": faultyRun, "empty": emptyRun} {
		var first, second, md bytes.Buffer
		if err := make().HTML(&first); err != nil {
			t.Fatal(err)
		}
		if err := make().HTML(&second); err != nil {
			t.Fatal(err)
		}
		if err := make().Markdown(&md); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two pages of one run differ", name)
		}
		page := first.String()
		for _, bad := range []string{"<script", "<img", "http:", "https:", "@import", "url(", "javascript:1)\"", "NaN</text>", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page has %q", name, bad)
			}
		}
		for _, want := range []string{make().verdict.Reason, "How to check this", make().verdict.Verdict} {
			if !strings.Contains(page, want) || name != "" && want != "How to check this" && !strings.Contains(md.String(), want) {
				t.Errorf("%s: %q is not in both reports", name, want)
			}
		}
	}
}

// What a reader has to find is there, in both forms.
func TestReportHolds(t *testing.T) {
	var page, md bytes.Buffer
	r := faultyRun()
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"What was not tested", "uptime beyond 1m12s", "hrx-3092596, 10605 (86c33b5d5)", "240 of 240", "1,500 by LRU, 0 by LCP, 0 by id",
		"99.1 GiB → 99.3 GiB", "0.048703", "0.006767", "0.025629", "0.007957", "0.012405", strings.Repeat("b2", 32), strings.Repeat("d4", 32),
		"invalid(port-taken)", "signal 11 (segmentation fault)", "412,000 tokens", "LRU, never used before", "6m7s to 6m9s", "0.027412", "82.0 %", "2026-10-25 03:31:00Z",
	} {
		for form, text := range map[string]string{"page": page.String(), "Markdown": md.String()} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s lacks %q", form, want)
			}
		}
	}
	for _, title := range []string{"How far the evidence reaches", "Latency", "Faces over time", "Launches by slot", "Memory of the server"} {
		if !strings.Contains(page.String(), ">"+title+"</h2>") {
			t.Errorf("the page has no picture %q", title)
		}
	}
}

// A page does not grow with the run.
func TestLongRunMakesASmallPage(t *testing.T) {
	r := cleanRun()
	for i := range 300_000 {
		r.history.Answers = append(r.history.Answers, acceptance.AnswerAt{Seconds: float32(i) * 0.012, MS: float32(i%997) + 1})
	}
	for i := range 50_000 {
		r.history.Findings = append(r.history.Findings, acceptance.FindingAt{At: began.Add(time.Duration(i) * 72 * time.Millisecond), Face: "text", Detail: fmt.Sprint(i)})
	}
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 400_000 {
		t.Errorf("%d bytes", b.Len())
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s", n, got)
		}
	}
	if rate(1) != "no bound" || rate(math.NaN()) != "no bound" || rate(0.0019951) != "0.001995" || oneIn(0.002) != "500" {
		t.Error(rate(1), rate(math.NaN()), rate(0.0019951), oneIn(0.002))
	}
	for _, limits := range [][2]float64{{0, 1}, {0.001, 3000}, {70, 71}, {-5, 5}} {
		for _, logarithmic := range []bool{false, true} {
			if logarithmic && limits[0] <= 0 {
				continue
			}
			list := ticks(limits[0], limits[1], logarithmic)
			if len(list) < 2 && !logarithmic || len(list) > 12 {
				t.Errorf("%v: ticks %v", limits, list)
			}
		}
	}
}
