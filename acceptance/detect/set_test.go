package detect

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
)

func newSet(t *testing.T) *Set {
	t.Helper()
	s, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSaysWhatThereIs(t *testing.T) {
	for want, settings := range map[string]map[string]string{
		`no face of fault "nans"; there are nan, nan-wire, corruption`: {"nans": "gate"},
		`face nan is "on": say gate, report or off`:                    {"nan": "on"},
		`face nan is "": say`:                                          {"nan": ""},
		`face text cannot gate, for shapes of text`:                    {"text": "gate"},
		`face memory cannot gate`:                                      {"memory": "gate"},
		`face not-observed cannot gate`:                                {"not-observed": "gate"},
	} {
		if _, err := New(settings); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %s…", settings, err, want)
		}
	}
	if _, err := New(map[string]string{"numeric": "gate", "crash": "report", "leak": "off"}); err != nil {
		t.Error(err)
	}
}

func TestFaces(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Faces() {
		if seen[f.Name] || f.About == "" || strings.HasSuffix(f.About, ".") || f.Default == Off || f.Default == Gate && !f.Gates {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = true
		if request := f.Unit == UnitRequest; !request && f.Unit != UnitArm || request != Sees(f.Name, sound()) && f.Needs != NeedsSentinels {
			t.Errorf("%s counts %ss, and a sound request shows it: %v", f.Name, f.Unit, Sees(f.Name, sound()))
		}
	}
	if len(seen) != 23 {
		t.Errorf("%d faces", len(seen))
	}
}

// sound is a request that shows all that one can.
func sound() Request {
	return Request{Outcome: Answered, Status: 200, ProbsAsked: true, Predicted: 24, Observed: 24}
}

func TestSees(t *testing.T) {
	with := func(change func(*Request)) Request {
		r := sound()
		change(&r)
		return r
	}
	for name, tt := range map[string]struct {
		r     Request
		blind string // of the faces that a sound request shows
	}{
		"sound":         {sound(), ""},
		"censored":      {with(func(r *Request) { r.Outcome = Censored }), "nan nan-wire leak hang transport status in-band format json utf8 empty context not-observed text"},
		"deadline":      {Request{Outcome: Deadline}, "nan-wire leak status in-band format json utf8 empty not-observed text"},
		"not asked":     {with(func(r *Request) { r.ProbsAsked, r.Observed = false, 0 }), "nan-wire not-observed"},
		"not observed":  {with(func(r *Request) { r.Observed = 0 }), "nan-wire"},
		"few observed":  {with(func(r *Request) { r.Observed = 11 }), "nan-wire"},
		"half observed": {with(func(r *Request) { r.Observed = 12 }), ""},
		"short":         {with(func(r *Request) { r.Short = true }), "leak"},
		"status 500":    {Request{Outcome: Answered, Status: 500, ProbsAsked: true}, "nan-wire leak in-band json empty not-observed text"},
		"no tokens":     {Request{Outcome: Answered, Status: 200, ProbsAsked: true}, "nan-wire leak not-observed text"},
	} {
		var blind []string
		for _, f := range names() {
			if Sees(f, sound()) && !Sees(f, tt.r) {
				blind = append(blind, f)
			}
		}
		if got := strings.Join(blind, " "); got != tt.blind {
			t.Errorf("%s: blind are %s, want %s", name, got, tt.blind)
		}
	}
	sentinel := with(func(r *Request) { r.Kind = Sentinel })
	for _, f := range []string{Corruption, Numeric} {
		if Sees(f, sound()) || !Sees(f, sentinel) {
			t.Errorf("%s is shown by a unique prompt: %v, by a sentinel: %v", f, Sees(f, sound()), Sees(f, sentinel))
		}
	}
	if Sees(Crash, sound()) || Sees("nonsense", sound()) {
		t.Error("a face of the life is not of a request")
	}
}

func TestExit(t *testing.T) {
	for name, tt := range map[string]struct {
		e    Exit
		want string
	}{
		"abort":      {Exit{Status: engine.ExitStatus{Code: -1, Signal: syscall.SIGABRT}}, "crash fault: the server ended by itself: signal 6 (aborted)"},
		"by a shell": {Exit{Status: engine.ExitStatus{Code: 134}}, "crash fault: the server ended by itself: signal 6 (aborted)"},
		"killed":     {Exit{Status: engine.ExitStatus{Code: 137}}, "crash fault: the server ended by itself: signal 9 (killed)"},
		"segment":    {Exit{Status: engine.ExitStatus{Code: 139}}, "crash fault: the server ended by itself: signal 11 (segmentation fault)"},
		"in silence": {Exit{}, "crash fault: the server ended by itself: exit status 0"},
		"for memory": {Exit{engine.ExitStatus{Code: 137}, true, ""}, "crash invalid: the server was killed for memory: signal 9 (killed)"},
		"by a guard": {Exit{KilledBy: "sending SIGTERM to process 7"}, "crash invalid: the server was killed for memory: exit status 0"},
		"meanwhile":  {Exit{engine.ExitStatus{Code: 139}, true, ""}, "crash fault: the server ended by itself: signal 11 (segmentation fault)"},
	} {
		if got := tell(newSet(t).Exit(tt.e)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func tell(found []Finding) string {
	var list []string
	for _, f := range found {
		list = append(list, fmt.Sprintf("%s %s: %s", f.Face, f.Grade, f.Detail))
	}
	return strings.Join(list, "\n")
}

func TestRestart(t *testing.T) {
	a := Identity{PID: 7, Start: 100}
	for name, tt := range map[string]struct {
		now  Identity
		want bool
	}{
		"the same": {a, false}, "another": {Identity{8, 120}, true}, "the id again": {Identity{7, 120}, true}, "not told": {Identity{}, false},
	} {
		if got := len(newSet(t).Restart(a, tt.now)) > 0; got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"0.01.000.000 E common_sampler_sample: HRX returned NaN logits: count=151936 of 151936, index range [0..151935], contiguous=yes, continuing=no (engine#315)": "nan fault",
		"[60671] 0.01.000.000 E HRX returned NaN logits at vocab index 0 - refusing to sample a silently wrong token (engine#123)":                                   "nan fault",
		"/src/llama.cpp/common/sampling.cpp:620: HRX: NaN logits (engine#123)":                                                                                       "nan fault",
		"  candidates->size: 40, max = nan, sump = nan":                                                                                                              "nan fault",
		"/src/ggml.c:1: GGML_ASSERT(x) failed":                                                                                                                       "crash fault",
		"terminate called after throwing an instance of 'std::exception'":                                                                                            "crash fault",
		"0.01.000.000 E hrx: HSA_STATUS_ERROR_EXCEPTION":                                                                                                             "hsa fault",
		"0.01.000.000 E hrx: Queue error":                                                                                                                            "hsa fault",
		"wait for HRX graph replay commands failed":                                                                                                                  "hsa fault",
		"0.01.000.000 E hrx_allocator_allocate_buffer: HSA_STATUS_ERROR_OUT_OF_RESOURCES":                                                                            "",
		"0.01.000.000 E allocate HRX host staging buffer: HSA_STATUS_ERROR":                                                                                          "",
		"0.01.000.000 I print_info: model name = HSA_STATUS_ERROR and HRX returned NaN log":                                                                          "",
		"0.01.000.000 I srv  params_from_: prompt: wait for HRX graph replay commands failed":                                                                        "",
		"0.01.000.000 I slot launch_slot_: id  3 | task 187 | processing task, is_child = 0":                                                                         "",
	} {
		ev, _ := engine.ParseLogLine(line)
		if got := strings.Join(graded(newSet(t).Line(ev)), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestPlacement(t *testing.T) {
	gpu := []string{"HRX0"}
	for name, tt := range map[string]struct {
		p    Placement
		want string
	}{
		"nothing is wanted":    {Placement{}, ""},
		"there":                {Placement{WantDevice: "HRX0", WantLayers: "all", Devices: gpu, Offloaded: 33, Layers: 33}, ""},
		"one of several":       {Placement{WantDevice: "HRX0", Devices: []string{"CUDA0", "HRX0"}}, ""},
		"elsewhere":            {Placement{WantDevice: "HRX0", Devices: []string{"Vulkan0"}}, "device fault: the model is on Vulkan0, the plan wants HRX0"},
		"nowhere":              {Placement{WantDevice: "HRX0"}, "device fault: the log names no device, the plan wants HRX0"},
		"in part":              {Placement{WantLayers: "all", Devices: gpu, Offloaded: 7, Layers: 33}, "device fault: 7 of 33 layers are on the device, the plan wants all"},
		"in part, as invalid":  {Placement{WantLayers: "all", CountsAs: "invalid", Offloaded: 7, Layers: 33}, "device invalid: 7 of 33 layers are on the device, the plan wants all"},
		"on the processor":     {Placement{WantLayers: "all"}, "device fault: the log names no offloaded layers, the plan wants all"},
		"in part, as intended": {Placement{WantDevice: "HRX0", Devices: gpu, Offloaded: 7, Layers: 33}, ""},
	} {
		if got := tell(newSet(t).Placement(tt.p)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestKernel(t *testing.T) {
	ev := gpu.Event{Kind: "ring-timeout", Fault: true, Device: "0000:0b:00.0", Process: "desktop-shell", Text: "ring gfx_0.0.0 timeout"}
	soft, evict := ev, ev
	soft.Kind, soft.Fault = gpu.KindSoftRecovered, false
	evict.Kind, evict.Fault = gpu.KindEvict, false
	for name, tt := range map[string]struct {
		ev   gpu.Event
		ours string
		want string
	}{
		"ours":            {ev, "process", "kernel fault"},
		"our device":      {ev, "device", "kernel fault"},
		"somebody else's": {ev, "", "kernel warning"},
		"soft":            {soft, "device", "kernel warning"},
		"evicted":         {evict, "process", ""},
	} {
		if got := strings.Join(graded(newSet(t).Kernel(tt.ev, tt.ours)), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestMemoryOfTheServer(t *testing.T) {
	grow := func(n int, mib func(i int) float64) []Sample {
		var list []Sample
		for i := range n {
			list = append(list, Sample{Requests: 10 * i, MiB: mib(i)})
		}
		return list
	}
	noise := func(i int) float64 { return float64(i*7919%13) / 4 }
	rng := rand.New(rand.NewPCG(26, 0)) // whose numbers rise by 49 MiB, by chance
	for name, tt := range map[string]struct {
		samples []Sample
		want    string
	}{
		"ups and downs":         {grow(30, func(int) float64 { return 3000 + 400*rng.Float64() }), ""},
		"8 MiB a request":       {grow(100, func(i int) float64 { return 300 + 80*float64(i) + noise(i) }), "the server grows by 8 MiB a request and has not flattened"},
		"a plateau":             {grow(100, func(i int) float64 { return 300 + 80*float64(min(i, 50)) }), ""},
		"flat":                  {grow(100, func(i int) float64 { return 300 + noise(i) }), ""},
		"falls":                 {grow(100, func(i int) float64 { return 900 - 5*float64(i) }), ""},
		"warms up":              {grow(100, func(i int) float64 { return 300 + 50*float64(min(i, 15)) + noise(i) }), ""},
		"back to where it was":  {grow(100, func(i int) float64 { return 300 + 40*float64(min(i, 99-i)) }), ""},
		"a few MiB in all":      {grow(100, func(i int) float64 { return 300 + 0.1*float64(i) }), ""},
		"too few":               {grow(8, func(i int) float64 { return 300 + 80*float64(i) }), ""},
		"none":                  {nil, ""},
		"numbers that are none": {grow(100, func(i int) float64 { return math.NaN() }), ""},
		"one of them": {grow(100, func(i int) float64 {
			if i == 50 {
				return math.Inf(1)
			}
			return 300 + 80*float64(i)
		}), "the server grows by 8 MiB"},
		"very many":               {grow(50000, func(i int) float64 { return 300 + 0.8*float64(i) }), "the server grows by 0.08 MiB"},
		"all at the same request": {make([]Sample, 100), ""},
	} {
		found := newSet(t).Memory(tt.samples)
		if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Grade != Warning || !strings.HasPrefix(found[0].Detail, tt.want)) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if g := GrowthPerRequest(grow(100, func(i int) float64 { return 80 * float64(i) })); g != 8 || !math.IsNaN(GrowthPerRequest(nil)) {
		t.Errorf("growth %g", g)
	}
}

// A part of an answer is not judged as a whole one, but what is no number in it counts.
func TestHalfAnAnswer(t *testing.T) {
	half := []byte(`{"content":"ab` + "\xe5")
	for name, tt := range map[string]struct {
		x    Exchange
		want []string
	}{
		"timed out": {Exchange{Answer: engine.ParseAnswer(200, half, true), Err: errors.New("late"), Deadline: true}, []string{"hang fault"}},
		"cut off":   {Exchange{Answer: engine.ParseAnswer(200, half, true), Err: errors.New("EOF")}, []string{"transport fault"}},
		"nothing":   {Exchange{Err: errors.New("refused")}, []string{"transport fault"}},
		"cut off after a null": {Exchange{Answer: engine.ParseAnswer(200, []byte("data: {\"content\":\"a\",\"completion_probabilities\":[{\"id\":1,\"logprob\":null}]}\n\ndata: {\"con"), true), Err: errors.New("EOF")},
			[]string{"nan-wire fault", "transport fault"}},
	} {
		tt.x.NPredict = 8
		if diff := cmp.Diff(tt.want, graded(newSet(t).Exchange(&tt.x))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCounters(t *testing.T) {
	s := newSet(t)
	now := time.Unix(1000, 0)
	s.Now = func() time.Time { now = now.Add(time.Second); return now }
	bad := func() *engine.Answer {
		return engine.ParseAnswer(200, []byte(`{"content":"a","tokens_predicted":1,"completion_probabilities":[{"id":1,"logprob":null}]}`), true)
	}
	good := engine.ParseAnswer(200, []byte(`{"content":"a","tokens_predicted":1,"completion_probabilities":[{"id":1,"logprob":-1}]}`), true)
	for i, a := range []*engine.Answer{good, bad(), bad(), engine.ParseAnswer(200, []byte(`{"content":"a","tokens_predicted":1}`), false)} {
		s.Exchange(&Exchange{ID: i, NPredict: 1, ProbsAsked: i < 3, Answer: a})
	}
	for _, c := range s.Counters() {
		var want Counter
		switch c.Face {
		case NaNWire:
			want = Counter{Face: NaNWire, Setting: Gate, Seen: 3, Found: 2, First: time.Unix(1001, 0), Excerpt: `{"content":"a","tokens_predicted":1,"completion_probabilities":[{"id":1,"logprob":null}]}`}
		case Text:
			want = Counter{Face: Text, Setting: Report, Seen: 4}
		case Crash:
			want = Counter{Face: Crash, Setting: Gate}
		default:
			continue
		}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Error(diff)
		}
	}
}

func TestExcerpts(t *testing.T) {
	for in, want := range map[string]string{
		" plain \n": "plain", "a\x00b": `a\x00b`, "\xe5": `\xe5`, "größer": "größer", "a\"b": `a"b`, "tab\there": `tab\there`,
		strings.Repeat("x", 300): strings.Repeat("x", 200), strings.Repeat("哈", 100): strings.Repeat("哈", 66),
	} {
		if got := quote([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What fills caches first is no growth, and a few samples tell none.
func TestGrowthAfterTheWarmUp(t *testing.T) {
	var ramp []Sample
	for i := range 100 {
		mib := 100 + 2*float64(i)
		if i < 20 {
			mib = 10 * float64(i) // caches fill
		}
		ramp = append(ramp, Sample{Requests: i, MiB: mib})
	}
	if g := GrowthPerRequest(ramp); g != 2 {
		t.Errorf("slope %v, want 2 MiB a request", g)
	}
	if g := GrowthPerRequest(ramp[:5]); !math.IsNaN(g) {
		t.Errorf("5 samples give the slope %v", g)
	}
}
