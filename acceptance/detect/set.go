package detect

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
)

// table is all(), made once.
var table = sync.OnceValue(all)

// A Set holds the faces of one server life. Its methods may be called by many goroutines at once.
type Set struct {
	Now func() time.Time // for the counters; nil: they have no time

	faces []face // those that are not off
	book  *Nonces

	mu       sync.Mutex
	counters map[string]*Counter
}

// A Counter is what a face has seen of one server life.
type Counter struct {
	Face    string    `json:"face"`
	Setting Setting   `json:"setting"`
	Seen    int       `json:"seen"`  // requests that could have shown it; of a face of the life: things looked at
	Found   int       `json:"found"` // findings of any grade
	First   time.Time `json:"first,omitzero"`
	Excerpt string    `json:"excerpt,omitempty"` // of the first
}

// New makes the set of a plan's settings: face to gate, report or off. A face that is not named has its default. The
// error for an unknown face or setting names those there are.
func New(settings map[string]string) (*Set, error) {
	s := &Set{counters: map[string]*Counter{}}
	for name := range settings {
		if !slices.ContainsFunc(table(), func(f face) bool { return f.Name == name }) {
			return nil, fmt.Errorf("no face of fault %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	for _, f := range table() {
		set := f.Default
		if v, ok := settings[f.Name]; ok {
			set = Setting(v)
		}
		switch {
		case set != Gate && set != Report && set != Off:
			return nil, fmt.Errorf("face %s is %q: say gate, report or off", f.Name, set)
		case set == Gate && !f.Gates:
			return nil, fmt.Errorf("face %s cannot gate, for %s: say report or off", f.Name, f.About)
		}
		s.counters[f.Name] = &Counter{Face: f.Name, Setting: set}
		if set == Off {
			continue
		}
		s.faces = append(s.faces, f)
		if f.Name == Leak {
			s.book = NewNonces()
		}
	}
	return s, nil
}

func names() []string {
	var list []string
	for _, f := range table() {
		list = append(list, f.Name)
	}
	return list
}

// Sent tells of a request before it is sent: from now on its nonce in the answer to another one is a leak.
func (s *Set) Sent(id int, nonce string) {
	if s.book != nil {
		s.book.Add(id, nonce)
	}
}

// Exchange looks at one request that has ended.
func (s *Set) Exchange(x *Exchange) []Finding {
	x.book, x.tenant = s.book, -1
	if x.Answer != nil {
		x.faults = x.Answer.Faults()
		if s.book != nil {
			x.tenant = s.book.Serve(x.Answer.SlotID, x.ID)
		}
	}
	if x.request().Outcome != Answered {
		// A part of an answer is broken where it ends; what is no number was none before that.
		x.faults = slices.DeleteFunc(x.faults, func(f engine.AnswerFault) bool { return f.Face != engine.FaceNaN })
	}
	return s.see(x)
}

// Line looks at a line of the server's log.
func (s *Set) Line(ev engine.LogEvent) []Finding { return s.see(ev) }

// Kernel looks at a line of the kernel's log. ours says how it concerns the server, as gpu.Event.Ours does.
func (s *Set) Kernel(ev gpu.Event, ours string) []Finding { return s.see(KernelEvent{ev, ours}) }

// Exit looks at how the server ended by itself.
func (s *Set) Exit(e Exit) []Finding { return s.see(e) }

// Restart looks at who listens on the server's port.
func (s *Set) Restart(before, after Identity) []Finding { return s.see(Relisten{before, after}) }

// Placement looks at where the model is.
func (s *Set) Placement(p Placement) []Finding { return s.see(p) }

// Startup looks at a server that never became ready.
func (s *Set) Startup(f FailedStart) []Finding { return s.see(f) }

// Identity compares two answers to the same greedy request, one after the other on a quiet server.
func (s *Set) Identity(first, second *engine.Answer) []Finding { return s.see(Pair{first, second}) }

// Sentinel compares an answer under load with the one that the quiet server gave.
func (s *Set) Sentinel(reference, under *engine.Answer, tau float64) []Finding {
	return s.see(Comparison{reference, under, tau})
}

// Memory looks at the memory of the server over its whole life.
func (s *Set) Memory(samples []Sample) []Finding { return s.see(Samples(samples)) }

// see shows every face what happened.
func (s *Set) see(happened any) []Finding {
	var found []Finding
	x, isExchange := happened.(*Exchange)
	for _, f := range s.faces {
		looked := isExchange && f.sees != nil && f.sees(x.request())
		var own []Finding
		for _, find := range f.find {
			list, ok := find(happened)
			looked = looked || ok && f.sees == nil
			own = append(own, list...)
		}
		for i := range own {
			own[i].Face = f.Name
		}
		s.count(f.Name, looked, own)
		found = append(found, own...)
	}
	return found
}

func (s *Set) count(name string, looked bool, found []Finding) {
	if !looked && len(found) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters[name]
	if looked {
		c.Seen++
	}
	if len(found) > 0 && c.Found == 0 {
		c.Excerpt = found[0].Excerpt
		if s.Now != nil {
			c.First = s.Now()
		}
	}
	c.Found += len(found)
}

// Counters gives the counters of every face, in the order of Faces.
func (s *Set) Counters() []Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Counter
	for _, name := range names() {
		list = append(list, *s.counters[name])
	}
	return list
}
