package incident

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/systemd"
)

// Words in prompts, in names and in what somebody else writes are no events.
func TestFreeTextIsNoEvent(t *testing.T) {
	guard := "HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing="
	cases := map[string]string{
		"a prompt with line breaks, told at once":              `10:00:03.0 1bit[20] "0.02.900.000 D que post: prompt: x\n0.02.900.000 E f: ` + guard + `yes\n/src/a.cpp:1: HRX: NaN logits"`,
		"a line of a prompt without a time":                    "10:00:03.0 1bit[20] common_sampler_sample: " + guard + "yes",
		"a line of a prompt with another time":                 "10:00:03.0 1bit[20] 367.05.963.920 E common_sampler_sample: " + guard + "yes",
		"a guard that stops, and the server goes on":           "10:00:03.0 1bit[20] 0.02.900.000 E common_sampler_sample: " + guard + "no",
		"an abort that the server outlives":                    "10:00:03.0 1bit[20] /src/ggml.c:99: GGML_ASSERT(false) failed",
		"words of systemd's from the service":                  "10:00:03.0 1bit[20] llm.service: Main process exited, code=killed, status=11/SEGV",
		"a model's name":                                       "10:00:03.0 1bit[20] 0.02.900.000 I srv load_model: loading model '/m/HRX returned NaN logits.gguf'",
		"a path that was asked for":                            "10:00:03.0 1bit[20] 0.02.900.000 I srv log_server_r: request: GET /HRX: NaN logits 127.0.0.1 404",
		"a stack in a prompt":                                  "10:00:03.0 1bit[20] #0  0x0000 in evil () from /x",
		"an OOM kill in a prompt":                              "10:00:03.0 1bit[20] Out of memory: Killed process 20 (llama-server)",
		"a host line in a prompt":                              "10:00:03.0 1bit[20] GTT 1.0 of 2.0 GiB free, MemAvailable 3.0 GiB",
		"words of systemd's on the standard output of a shell": "10:00:03.0 systemd[20] llm.service: Failed with result 'oom-kill'.",
	}
	for name, line := range cases {
		entries := entriesOf(t, "== a"+serverStart+"\n"+line+`
			10:00:04.0 1bit[20] 0.03.900.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 20, truncated = 0
			10:00:04.0 1bit[20] 0.03.900.100 I srv  update_slots: all slots are idle`, false)
		for i := range entries {
			if entries[i].PID == 20 {
				entries[i].Fields["_TRANSPORT"] = "stdout"
			}
		}
		r := Analyse(&Evidence{Unit: testUnit, Entries: entries})
		if r.Ending != nil || len(r.Guard) > 0 || r.Abort != "" || len(r.Trace) > 0 || r.Signature != "" {
			t.Errorf("%s makes an event: %+v %v %q", name, r.Ending, r.Guard, r.Signature)
		}
		for _, run := range runsOf(entries) {
			if hosts := readEngine(run.lines, nil).hosts; len(hosts) > 0 {
				t.Errorf("%s makes numbers of the host: %v", name, hosts)
			}
		}
	}
}

// hostileWords are what foreign text may hold. Each carries a word that is found again: zq.
var hostileWords = []string{
	"zq", "```zq", "`zq`", "``zq", "zq|zq", "|", "@zq", "#123", "<script>zq</script>", "<!-- zq", "[zq](https://zq.example)", "![zq](http://zq.example/x.png)", "**zq**", "__zq__",
	"zq\n# zq", "zq\r\nzq", "\x1b[31mzq\x1b[0m", "\x1b]0;zq\x07", "\u202ezq", "zq\xff\xfe", "~~~zq", "    zq", "> zq", "- zq", "1. zq", "\\zq", "&lt;zq", "$zq$", "zq\x00", "</details>zq", "</code>zq",
	strings.Repeat("zq", 40000), "https://zq.example/@zq", "zq://`zq`", "\u2028zq", "\u200bzq", "\t", "",
}

// evil fills a text with foreign words.
func evil(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		b.WriteString(hostileWords[r.IntN(len(hostileWords))])
		if r.IntN(2) == 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func evilEvidence(t *testing.T, r *rand.Rand) *Evidence {
	t.Helper()
	entries := entriesOf(t, "== a"+serverStart+`
		10:00:05.0 1bit[20] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing=no
		10:00:05.0 1bit[20] /src/a.cpp:600: HRX: NaN logits
		10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT
		10:00:05.1 systemd llm.service: Failed with result 'signal'.
		10:00:15.1 systemd llm.service: Scheduled restart job, restart counter is at 1.`, false)
	at := entries[0].At
	for i := range entries {
		if r.IntN(4) == 0 {
			entries[i].Message += evil(r)
		}
		if r.IntN(9) == 0 {
			entries[i].Message = evil(r)
		}
		if r.IntN(9) == 0 {
			entries[i].Identifier, entries[i].Missing, entries[i].Invocation = evil(r), evil(r), evil(r)
		}
		for key := range entries[i].Fields {
			if r.IntN(5) == 0 {
				entries[i].Fields[key] = evil(r)
			}
		}
	}
	x := func() string { return evil(r) }
	n := int64(5)
	return &Evidence{
		Unit: x(), Host: x(), Program: x(), Zone: x(), Entries: entries, GatheredAt: at, How: x(),
		State: UnitState{Load: x(), Active: x(), Sub: x(), Result: x(), Type: x(), Restart: x(), Invocation: x(), MemoryMax: &n, ControlGroup: x()},
		Files: []UnitFile{{Path: x(), Text: x(), Masked: 1}}, Command: []string{x(), "-m", x(), x(), "llama-server"},
		Settings:  []UnitSetting{{Key: x(), Value: x(), File: x(), Line: 3}},
		Package:   &Package{Name: x(), ID: x(), Version: x(), Digest: x(), Path: x(), Pins: map[string]string{x(): x()}, Carried: []string{x()}, Missing: []string{x()}, Unknown: []string{x()}},
		Newer:     []Package{{Name: x(), Version: x(), Gained: []string{x()}}},
		HostNow:   HostState{At: at, Kernel: x(), Command: x(), Parameters: map[string]string{x(): x(), "amdgpu.cwsr_enable": x()}, Load: x()},
		Processes: []gpu.Process{{PID: 3, Command: x(), Devices: []string{x()}}},
		Devices:   []gpu.Device{{PCI: x(), Driver: x(), Name: x()}},
		Claims:    []claim.Record{{Label: x(), User: x(), Command: x(), How: x(), Since: at.Add(-time.Hour), Until: at.Add(time.Hour)}},
		Runs:      []Run{{ID: 7, Workflow: x(), Name: x(), Head: x(), Title: x(), Status: x(), Conclusion: x(), URL: x(), Created: at.Add(-time.Hour), Updated: at.Add(time.Hour)}},
		Earlier:   []Earlier{{At: at, Unit: x(), Package: x(), Signature: x(), Folder: x()}},
		Missing:   []string{x()}, Gaps: []string{x()},
		Kernel: []gpu.Event{{Kind: x(), Device: x(), Process: x(), PID: 4, At: at, Text: x()}},
		OOM:    []OOMKill{{At: at, PID: 20, Process: x(), Text: x()}},
	}
}

var (
	reEscaped = regexp.MustCompile(`&amp;|&#64;`)
	reOwnLine = regexp.MustCompile("^(?:# |- |\\||<code>|<sub>|<details>|&|`|[0-9]+\\\\|[A-Za-z\\\\])")
	reOwnHTML = regexp.MustCompile(`</?(?:details|summary|sub|code)>`)
)

// plainText is what a renderer of Markdown would take for markup of the document: without fenced code, code spans,
// escaped characters and the few tags of our own.
func plainText(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "":
			if line == strings.Repeat("`", len(ticks)) && len(ticks) >= len(fence) {
				fence = ""
			}
			continue
		case len(ticks) >= 3 && strings.TrimPrefix(line, ticks) == "text":
			fence = ticks
			continue
		}
		if strings.Contains(line, "zq") && !reOwnLine.MatchString(line) {
			t.Errorf("%q begins a block", line)
		}
		b.WriteString(withoutSpans(line))
		b.WriteByte('\n')
	}
	if fence != "" {
		t.Error("a fence is not closed")
	}
	return b.String()
}

// withoutSpans leaves out what is escaped, and code spans as CommonMark finds them: from a run of backticks to the next
// one of the same length.
func withoutSpans(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		switch {
		case line[i] == '\\' && i+1 < len(line) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", line[i+1]) >= 0:
			i += 2
		case line[i] == '`':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			if end := closing(line[i+n:], n); end > 0 {
				i += n + end
			} else {
				b.WriteString(line[i : i+n])
				i += n
			}
		default:
			b.WriteByte(line[i])
			i++
		}
	}
	return b.String()
}

// closing is where a code span ends that began with n backticks, 0 if it does not.
func closing(s string, n int) int {
	for i := 0; i < len(s); i++ {
		m := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if m == n {
			return i + m
		}
		i += m
	}
	return 0
}

// Nothing that came from elsewhere is markup: no character that Markdown or HTML obeys stands by itself beside our own.
func TestMarkdownHasNoForeignMarkup(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		text := Analyse(evilEvidence(t, r)).Markdown()
		checkMarkdown(t, fmt.Sprintf("seed %d", seed), text)
		if t.Failed() {
			return
		}
	}
}

func checkMarkdown(t *testing.T, name, text string) {
	t.Helper()
	for _, c := range text {
		if c != '\n' && !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			t.Errorf("%s: the report has the character %q", name, c)
			return
		}
	}
	plain := reEscaped.ReplaceAllString(plainText(t, text), "")
	for line := range strings.Lines(plain) {
		rest := reOwnHTML.ReplaceAllString(line, "")
		rest = strings.ReplaceAll(rest, "**", "")
		if strings.HasPrefix(rest, "|") {
			rest = strings.ReplaceAll(rest, "|", "")
		}
		if i := strings.IndexAny(rest, "<>[]`*|@~$!_\\{}"); i >= 0 && strings.Contains(rest, "zq") {
			t.Errorf("%s: %q is markup", name, rest)
		}
	}
}

// Whatever the evidence, there is a report.
func FuzzAnalyse(f *testing.F) {
	f.Add("== a"+serverStart, int64(0), byte(0), "CEST")
	f.Add("10:00:05.1 systemd llm.service: Failed with result 'oom-kill'.", int64(-1<<62), byte(3), "America/Halifax")
	f.Add(strings.Join(hostileWords, "\n"), int64(1), byte(9), "../../etc")
	f.Add("10:00:05.0 1bit[20] 0.04.900.000 E f: HRX returned NaN logits: count=-5 of 9, index range [8..1], contiguous=yes, continuing=no", int64(1<<62), byte(1), "Local")
	f.Fuzz(func(t *testing.T, text string, shift int64, kind byte, zone string) {
		if len(text) > 1<<16 {
			return
		}
		e := &Evidence{Unit: testUnit, Zone: zone, GatheredAt: time.Unix(0, shift)}
		invocation := ""
		for i, line := range strings.Split(text, "\n") {
			en := systemd.Entry{At: time.Unix(int64(i), shift), Boot: "b", Message: line, Unit: testUnit, Invocation: invocation, Identifier: "1bit", PID: 20, Fields: map[string]string{}}
			if rest, ok := strings.CutPrefix(line, "== "); ok {
				invocation = rest
			}
			if m := reTestLine.FindStringSubmatch(strings.TrimLeft(line, "\t ")); m != nil {
				en.Identifier, en.PID, en.Message = m[2], atoi(m[3]), m[4]
			}
			if kind&1 != 0 && en.Identifier == "systemd" {
				identify(&en)
			}
			if kind&2 != 0 && i%5 == 0 {
				en.Boot, en.Missing = line, "x"
			}
			e.Entries = append(e.Entries, en)
		}
		if kind&4 != 0 {
			at := time.Unix(0, -shift)
			e.State = UnitState{Result: text, MainExited: &at, MainStarted: &at, MainCode: int(kind), MainStatus: int(shift)}
			e.Ended, e.Kept = &at, []Span{{at, at.Add(time.Second)}, {at.Add(-time.Hour), at}}
		}
		r := Analyse(e)
		checkMarkdown(t, "the report", r.Markdown())
		if again := Analyse(e); again.Markdown() != r.Markdown() {
			t.Error("the same evidence gives another report")
		}
	})
}
