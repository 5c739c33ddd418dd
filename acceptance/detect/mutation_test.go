package detect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/internal/fakeengine"
)

// A scenario is a life of the fake engine with something wrong, and the faces that have to tell of it: those and no
// others.
type scenario struct {
	fault  string // with its completion
	format string
	api    string
	stream bool
	oom    bool
	kernel []any

	faces string // separated by spaces
	grade Grade  // of the gravest finding; default Fault
}

func (s scenario) String() string {
	name := strings.Join([]string{s.fault, s.format, s.api}, "/")
	if s.stream {
		name += "/stream"
	}
	return fmt.Sprintf("%s/%v/%d", name, s.oom, len(s.kernel))
}

func in(kind string) string  { return fmt.Sprintf("%s@%d", kind, inLoad) }
func end(kind string) string { return fmt.Sprintf("%s@%d", kind, atEnd) }

func kernelEvent(kind, ours string) []any {
	fault := kind == gpu.KindRingTimeout
	return []any{KernelEvent{gpu.Event{Kind: kind, Fault: fault, Process: "llama-server", PID: 5100,
		Text: "amdgpu 0000:c4:00.0: ring comp_1.0.1 timeout, signaled seq=41, emitted seq=43"}, ours}}
}

func scenarios() []scenario {
	list := []scenario{
		// What one face alone can tell.
		{fault: in("guard-v1"), faces: NaN}, {fault: in("guard-v2"), faces: NaN},
		{fault: in("null"), faces: NaNWire},
		{fault: in("utf8"), faces: UTF8},
		{fault: in("json"), faces: JSON},
		{fault: in("format"), faces: Format},
		{fault: in("status"), faces: Status}, {fault: in("unavailable"), faces: Status}, {fault: in("loading"), faces: Status},
		{fault: in("in-band"), faces: InBand},
		{fault: in("no-deltas"), faces: Empty},
		{fault: in("reset"), faces: Transport}, {fault: in("cut"), faces: Transport},
		{fault: in("hang"), faces: Hang}, {fault: in("stall"), faces: Hang},
		{fault: in("leak"), faces: Leak},
		{fault: end("differ"), faces: Corruption}, {fault: in("corrupt-load"), faces: Corruption}, {fault: in("corrupt-text"), faces: Corruption},
		{fault: in("numeric"), faces: Numeric}, {fault: in("drift"), faces: Numeric, grade: Warning},
		{fault: end("exit-0"), faces: Crash}, {fault: end("exit-134"), faces: Crash}, {fault: end("exit-137"), faces: Crash},
		{fault: end("exit-139"), faces: Crash}, {fault: end("assert"), faces: Crash},
		{fault: end("exit-137"), oom: true, faces: Crash, grade: Invalid},
		{fault: end("restart"), faces: Restart},
		{fault: in("hsa"), faces: HSA},
		{fault: in("cpu-only"), faces: Device}, {fault: in("partial"), faces: Device},
		{fault: "start-exit", faces: Startup}, {fault: "start-hang", faces: Startup},
		{fault: "start-oom", faces: Startup, grade: Invalid}, {fault: "start-hsa-oom", faces: Startup, grade: Invalid},
		{kernel: kernelEvent(gpu.KindRingTimeout, "process"), faces: Kernel}, {kernel: kernelEvent(gpu.KindRingTimeout, "device"), faces: Kernel},
		{kernel: kernelEvent(gpu.KindRingTimeout, ""), faces: Kernel, grade: Warning}, {kernel: kernelEvent(gpu.KindEvict, "device"), faces: ""},
		{kernel: kernelEvent(gpu.KindSoftRecovered, "device"), faces: Kernel, grade: Warning},
		{fault: in("context"), faces: Context, grade: Invalid}, {fault: in("overcommit"), faces: Context, grade: Invalid},
		{fault: in("exceed-context"), faces: Context, grade: Invalid},
		{fault: in("no-probs"), faces: NotObserved, grade: Warning},
		{fault: in("replacement"), faces: Text, grade: Warning}, {fault: in("question"), faces: Text, grade: Warning},
		{fault: in("token-zero"), faces: Text, grade: Warning}, {fault: in("empty-text"), faces: Text, grade: Warning},
		{fault: in("ramp"), faces: Memory, grade: Warning},

		// What shows in several faces by its nature.
		{fault: in("guard-null"), faces: NaN + " " + NaNWire},
		{fault: in("abort"), faces: NaN + " " + Crash + " " + Transport}, {fault: in("abort-lost"), faces: NaN + " " + Crash + " " + Transport},
		{fault: in("crash"), faces: Crash + " " + Transport},
		{fault: in("corrupt-shape"), faces: Corruption + " " + Text},

		// What is no fault of an engine, or none that a face could tell.
		{}, {fault: in("utf8-cut")}, {fault: in("plateau")}, {fault: in("clock-step")}, {fault: "slot-3"}, {fault: "one-slot"}, {fault: "lcp"},
	}
	for _, format := range fakeengine.Formats()[1:] {
		list = append(list, scenario{format: format}, scenario{fault: in("guard-v1"), format: format, faces: NaN},
			scenario{fault: in("guard-v2"), format: format, faces: NaN}, scenario{fault: in("abort-lost"), format: format, faces: NaN + " " + Crash + " " + Transport},
			scenario{fault: in("hsa"), format: format, faces: HSA})
	}
	for _, api := range []string{engine.APICompletion, engine.APICompletions, engine.APIChat} {
		for _, stream := range []bool{false, true} {
			if api != engine.APIChat && !stream {
				continue
			}
			for kind, faces := range map[string]string{
				"utf8-cut": "", "null": NaNWire, "utf8": UTF8, "json": JSON, "in-band": InBand, "no-deltas": Empty, "cut": Transport, "stall": Hang,
				"leak": Leak, "corrupt-load": Corruption, "numeric": Numeric,
			} {
				list = append(list, scenario{fault: in(kind), api: api, stream: stream, faces: faces})
			}
		}
	}
	for i, s := range list {
		if s.grade == "" && s.faces != "" {
			list[i].grade = Fault
		}
	}
	return list
}

// replay shows a life to the faces and returns those that found something, with the gravest grade.
func replay(t *testing.T, happened []any, settings map[string]string) (faces []string, grade Grade, found []Finding) {
	t.Helper()
	s, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range happened {
		switch v := h.(type) {
		case sent:
			s.Sent(v.id, v.nonce)
		case *Exchange:
			x := *v
			found = append(found, s.Exchange(&x)...)
		default:
			found = append(found, s.see(v)...)
		}
	}
	seen := map[string]bool{}
	for _, f := range found {
		seen[f.Face] = true
		if rank(f.Grade) > rank(grade) {
			grade = f.Grade
		}
	}
	for _, c := range s.Counters() {
		if (c.Found > 0) != seen[c.Face] || c.Setting == Off && (c.Seen > 0 || c.Found > 0) {
			t.Errorf("counter %+v, found %v", c, seen[c.Face])
		}
	}
	return slices.Sorted(maps.Keys(seen)), grade, found
}

func rank(g Grade) int { return slices.Index([]Grade{"", Warning, Invalid, Fault}, g) }

func without(faces []string, off string) []string {
	return slices.DeleteFunc(slices.Clone(faces), func(f string) bool { return f == off })
}

// Every fault is told by its faces and by no other, and a face that is off hides what it alone tells and nothing else.
func TestEachFaceCatchesItsOwn(t *testing.T) {
	list := scenarios()
	lives := make([][]any, len(list))
	var all sync.WaitGroup
	atOnce := make(chan struct{}, 16)
	for i, s := range list {
		all.Go(func() {
			atOnce <- struct{}{}
			lives[i] = record(t, s)
			<-atOnce
		})
	}
	all.Wait()
	alone, tried := map[string]int{}, map[string]bool{}
	for i, s := range list {
		want := strings.Fields(s.faces)
		slices.Sort(want)
		if want = slices.Clip(want); len(want) == 1 {
			alone[want[0]]++
		}
		kind, _, _ := strings.Cut(s.fault, "@")
		tried[kind] = true
		faces, grade, found := replay(t, lives[i], nil)
		if !cmp.Equal(append([]string{}, want...), append([]string{}, faces...)) || grade != s.grade {
			t.Errorf("%s: %v told of it as %s, want %v as %s: %+v", s, faces, grade, want, s.grade, found)
			continue
		}
		for _, off := range names() {
			faces, _, found := replay(t, lives[i], map[string]string{off: string(Off)})
			if left := without(want, off); !cmp.Equal(append([]string{}, left...), append([]string{}, faces...)) {
				t.Errorf("%s, %s off: %v told of it, want %v: %+v", s, off, faces, left, found)
			}
		}
	}
	for _, f := range names() {
		if alone[f] == 0 {
			t.Errorf("no fault that %s alone tells", f)
		}
	}
	for _, kind := range fakeengine.Faults() {
		if !tried[kind] {
			t.Errorf("fault %s is not tried", kind)
		}
	}
}
