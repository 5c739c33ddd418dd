package acceptance

import (
	"cmp"
	"net/http"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// A faceTable is what a plan makes of the faces of fault.
type faceTable struct {
	infos    []detect.FaceInfo
	settings []detect.Setting
	index    map[string]int
	rank     map[string]int        // the lower the more telling
	sees     [sightKinds]*faceMask // what a request of each kind could show; nil: not asked for yet
	gating   faceMask              // gating faces that any request of the load could show
}

// faceMask is a set of faces, by their index.
type faceMask uint64

func (m faceMask) has(i int) bool { return m>>i&1 == 1 }

// telling are the faces that name a cause or the gravest harm; one of them
// speaks for a fault that shows in several. The others follow in the order of
// detect.Faces.
var telling = []string{
	detect.Leak, detect.NaN, detect.NaNWire, detect.Corruption, detect.HSA, detect.Kernel, detect.Device, detect.Startup,
	detect.Crash, detect.Restart, detect.Hang,
}

func newFaceTable(p *Plan) *faceTable {
	t := &faceTable{infos: detect.Faces(), index: map[string]int{}, rank: map[string]int{}}
	for i, f := range t.infos {
		setting := f.Default
		if s, ok := p.Faces[f.Name]; ok {
			setting = detect.Setting(s)
		}
		t.settings = append(t.settings, setting)
		t.index[f.Name] = i
		t.rank[f.Name] = len(telling) + i
		if setting == detect.Gate && f.Unit == detect.UnitRequest && f.Needs != detect.NeedsSentinels {
			t.gating |= 1 << i
		}
	}
	for i, name := range telling {
		t.rank[name] = i
	}
	return t
}

// shows is what a request of a kind could show.
func (t *faceTable) shows(kind int) faceMask {
	if t.sees[kind] == nil {
		var m faceMask
		for i, f := range t.infos {
			if detect.Sees(f.Name, sight(kind).request()) {
				m |= 1 << i
			}
		}
		t.sees[kind] = &m
	}
	return *t.sees[kind]
}

// setting is the plan's for a face. One that we do not know gates: whoever
// wrote it down meant something by it.
func (t *faceTable) setting(name string) detect.Setting {
	if i, ok := t.index[name]; ok {
		return t.settings[i]
	}
	return detect.Gate
}

// canFail tells whether any face that gates can be a fault. That of a context
// which is too small never is.
func (t *faceTable) canFail() bool {
	for i, f := range t.infos {
		if t.settings[i] == detect.Gate && f.Name != detect.Context {
			return true
		}
	}
	return false
}

// compare orders faces, the most telling first.
func (t *faceTable) compare(a, b string) int {
	rank := func(name string) int {
		if r, ok := t.rank[name]; ok {
			return r
		}
		return len(telling) + len(t.infos)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// A sight is everything about a request that decides which faces it could have
// shown: few enough to count the requests of each.
type sight uint16

const (
	sightProbs    sight = 1 << iota // log-probabilities were asked for
	sightTokens                     // tokens came
	sightObserved                   // most of them with log-probabilities
	sightOK                         // status 200
	sightSentinel
	sightAnswered
	sightDeadline
	sightShort // the text cannot hold a nonce

	sightKinds = 1 << 8
)

func sightOf(r *requestRecord) sight {
	var s sight
	add := func(is bool, bit sight) {
		if is {
			s |= bit
		}
	}
	add(r.ProbsAsked, sightProbs)
	add(r.Predicted > 0, sightTokens)
	add(detect.MostObserved(r.Predicted, r.Observed), sightObserved)
	add(r.TextSum != 0 && r.Chars < detect.Window, sightShort)
	add(r.Status == http.StatusOK, sightOK)
	add(r.Kind == kindSentinel, sightSentinel)
	add(r.Outcome == outcomeAnswered, sightAnswered)
	add(r.Outcome == outcomeDeadline, sightDeadline)
	return s
}

// request is a request of this sight.
func (s sight) request() detect.Request {
	r := detect.Request{Outcome: detect.NoAnswer, ProbsAsked: s&sightProbs != 0, Short: s&sightShort != 0}
	if s&sightAnswered != 0 {
		r.Outcome = detect.Answered
	} else if s&sightDeadline != 0 {
		r.Outcome = detect.Deadline
	}
	if s&sightOK != 0 {
		r.Status = http.StatusOK
	}
	if s&sightSentinel != 0 {
		r.Kind = detect.Sentinel
	}
	if s&sightTokens != 0 {
		r.Predicted = 1
	}
	if s&sightObserved != 0 {
		r.Observed = 1
	}
	return r
}

// A chances counts requests without a fault by their sight, and those with one.
type chances struct {
	clean   [sightKinds]int
	faulted int
}

func (c *chances) add(o *chances) {
	for i, n := range o.clean {
		c.clean[i] += n
	}
	c.faulted += o.faulted
}

// of is how many requests could have shown a face. One with a fault counts for
// every face: it was seen to be bad.
func (c *chances) of(t *faceTable, face int) int {
	n := c.faulted
	for kind, some := range c.clean {
		if some > 0 && t.shows(kind).has(face) {
			n += some
		}
	}
	return n
}

// short is how many answers cannot hold a nonce.
func (c *chances) short() int {
	n := 0
	for kind, some := range c.clean {
		if sight(kind)&sightShort != 0 {
			n += some
		}
	}
	return n
}

// least is how many the blindest of the gating faces could have been shown by.
// It is 0 if none gates: then nothing is excluded.
func (c *chances) least(t *faceTable) int {
	if t.gating == 0 {
		return 0
	}
	all := c.faulted
	for _, n := range c.clean {
		all += n
	}
	least := all
	for i := range t.infos {
		if t.gating.has(i) {
			least = min(least, c.of(t, i))
		}
	}
	return least
}
