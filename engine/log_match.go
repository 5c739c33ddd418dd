package engine

import "time"

// A Reply is what the wire knows of one request's answer.
type Reply struct {
	Slot   int  // -1: it names none, as errors do
	Tokens int  // generated; 0 or less: not known
	Cut    bool // the answer was not received whole
	// Sent and Received are on the clock of the tasks' times. Received is zero
	// where that is not known.
	Sent, Received time.Duration
}

// clocksApart is how far the clocks of the client and of the log may be apart.
const clocksApart = 100 * time.Millisecond

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
// tokens and the times; a reply is matched if all of them give it the same task.
func MatchReplies(tasks []Task, replies []Reply) []int {
	match := make([]int, len(replies))
	bySlot := map[int][]int{}
	for i, r := range replies {
		match[i] = -1
		if r.Slot >= 0 {
			bySlot[r.Slot] = append(bySlot[r.Slot], i)
		}
	}
	onSlot := map[int][]int{}
	for i, t := range tasks {
		if t.Error == "" && !t.Child {
			onSlot[t.Slot] = append(onSlot[t.Slot], i)
		}
	}
	for slot, came := range bySlot {
		matchSlot(match, tasks, replies, onSlot[slot], came)
	}
	return match
}

// matchSlot matches the replies of one slot. Taking for each the first task that
// will do gives the earliest that it can be of, taking the last from the end
// gives the latest.
func matchSlot(match []int, tasks []Task, replies []Reply, on, came []int) {
	earliest := make([]int, len(came))
	at := 0
	for k, i := range came {
		for at < len(on) && !tasks[on[at]].couldMake(replies[i]) {
			at++
		}
		if at == len(on) {
			matchByNumber(match, tasks, on, came)
			return
		}
		earliest[k] = on[at]
		at++
	}
	at = len(on) - 1
	for k := len(came) - 1; k >= 0; k-- {
		for !tasks[on[at]].couldMake(replies[came[k]]) {
			at--
		}
		if on[at] == earliest[k] {
			match[came[k]] = on[at]
		}
		at--
	}
}

// matchByNumber is for a log that counts tokens or time in another way: the
// k-th goes with the k-th if there are as many.
func matchByNumber(match []int, tasks []Task, on, came []int) {
	var waited []int
	for _, i := range on {
		if !tasks[i].Cancelled {
			waited = append(waited, i)
		}
	}
	if len(waited) != len(came) {
		return
	}
	for k, i := range came {
		match[i] = waited[k]
	}
}

// couldMake tells whether a reply can be the task's.
func (t Task) couldMake(r Reply) bool {
	if !r.Cut && (t.Cancelled || t.Tokens > 0 && r.Tokens > 0 && t.Tokens != r.Tokens) {
		return false
	}
	if r.Received == 0 {
		return true
	}
	return t.Launched >= r.Sent-clocksApart && t.Released <= r.Received+clocksApart
}
