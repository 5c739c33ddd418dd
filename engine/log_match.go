package engine

import (
	"math"
	"time"
)

// A Reply is what the wire knows of one request's answer.
type Reply struct {
	Slot   int  // -1: it names none, as errors do
	Tokens int  // generated; 0 or less: not known
	Cut    bool // the answer was not received whole
	// Sent and Received are on any clock that is not set meanwhile. Zero: not known.
	Sent, Received time.Duration
}

// MatchReplies finds for each reply the task that made it: its index in tasks,
// or -1 if that is not certain. The tasks are those of one life of one server,
// in the order in which the Joiner gave them; the replies are in the order in
// which they came.
//
// Replies carry no task, only a slot, and a slot does one task after another.
// So the k-th reply of a slot is of the slot's k-th task, but for tasks that
// nobody got a reply of: those that failed (an error names no slot), that were
// cancelled, or whose client gave up waiting. Where it is not known which those
// are, every way of leaving some out is weighed that agrees with the numbers of
// tokens; a reply is matched if all of them give it the same task. Those that
// this leaves open are weighed once more by times. How far the two clocks are
// apart is learned from the others.
func MatchReplies(tasks []Task, replies []Reply) []int {
	m := &matching{tasks: tasks, replies: replies, match: make([]int, len(replies))}
	came, on := map[int][]int{}, map[int][]int{}
	for i, r := range replies {
		m.match[i] = -1
		if r.Slot >= 0 {
			came[r.Slot] = append(came[r.Slot], i)
		}
	}
	for i, t := range tasks {
		if t.Error == "" && !t.Child {
			on[t.Slot] = append(on[t.Slot], i)
		}
	}
	for slot := range came {
		m.slot(on[slot], came[slot])
	}
	m.learn()
	for slot := range came {
		m.slot(on[slot], came[slot])
	}
	for slot := range came {
		m.byNumber(on[slot], came[slot])
	}
	return m.match
}

type matching struct {
	tasks   []Task
	replies []Reply
	match   []int
	timed   bool
	apart   clocks
}

// logLag is how long after an answer was received the release may be logged: the
// server sends first.
const logLag = 100 * time.Millisecond

// clocks is what is known of how far the replies' clock is ahead of the tasks'.
type clocks struct{ least, most time.Duration }

func anyClocks() clocks { return clocks{math.MinInt64, math.MaxInt64} }

// with takes in what one reply and its task tell: it was sent before the launch
// and received at or after the release.
func (c clocks) with(t Task, r Reply) clocks {
	if r.Sent != 0 {
		c.least = max(c.least, r.Sent-t.Launched)
	}
	if r.Received != 0 && t.Finished && !r.Cut {
		c.most = min(c.most, r.Received+logLag-t.Released)
	}
	return c
}

// learn takes what the certain matches say of the clocks, which is nothing if
// one of them was set meanwhile.
func (m *matching) learn() {
	c := anyClocks()
	for i, at := range m.match {
		if at >= 0 {
			c = c.with(m.tasks[at], m.replies[i])
		}
	}
	if c.least > c.most {
		c = anyClocks()
	}
	m.timed, m.apart = true, c
}

// slot matches the replies of one slot. Taking for each the first task that will
// do gives the earliest that it can be of, taking the last from the end gives
// the latest.
func (m *matching) slot(on, came []int) {
	earliest := make([]int, len(came))
	at := 0
	for k, i := range came {
		for at < len(on) && !m.could(on[at], i) {
			at++
		}
		if at == len(on) {
			return
		}
		earliest[k] = on[at]
		at++
	}
	at = len(on) - 1
	for k := len(came) - 1; k >= 0; k-- {
		for !m.could(on[at], came[k]) {
			at--
		}
		if on[at] == earliest[k] && m.match[came[k]] < 0 {
			m.match[came[k]] = on[at]
		}
		at--
	}
}

// could tells whether a reply can be a task's.
func (m *matching) could(task, reply int) bool {
	t, r := m.tasks[task], m.replies[reply]
	if !r.Cut && (t.Cancelled || t.Tokens > 0 && r.Tokens > 0 && t.Tokens != r.Tokens) {
		return false
	}
	if !m.timed {
		return true
	}
	c := m.apart.with(t, r)
	return c.least <= c.most
}

// byNumber is for a log that counts tokens in another way, so that nothing else
// has matched: the k-th goes with the k-th if there are as many.
func (m *matching) byNumber(on, came []int) {
	var waited []int
	for _, i := range on {
		if !m.tasks[i].Cancelled {
			waited = append(waited, i)
		}
	}
	if len(waited) != len(came) {
		return
	}
	for _, i := range came {
		if m.match[i] >= 0 {
			return
		}
	}
	for k, i := range came {
		m.match[i] = waited[k]
	}
}
