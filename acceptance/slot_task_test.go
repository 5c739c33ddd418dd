package acceptance

import (
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// What the slots did at the end of a life is joined with the requests.
func TestLastTasksAreJoined(t *testing.T) {
	var l lastReplies
	var tasks []engine.Task
	ms := func(v int) time.Duration { return time.Duration(v) * time.Millisecond }
	for i := range 3 * recent { // one after the other, on two slots
		slot, from := i%2, 100*i
		rec := requestRecord{ID: 1000 + i, Slot: slot, Predicted: 5 + i%7, StartUS: int64(from) * 1000, EndUS: int64(from+60) * 1000, Outcome: outcomeAnswered}
		l.add(&rec, i == 3*recent-3)
		tasks = append(last(tasks), engine.Task{
			Slot: slot, ID: i, Life: 1, How: engine.SelectedLRU, NeverUsed: i < 2, Tokens: 5 + i%7, Launched: ms(from), Released: ms(from + 59), Finished: true,
		})
	}
	tasks = append(last(tasks), engine.Task{Slot: 0, ID: 5000, Life: 1, How: engine.SelectedLRU, Launched: ms(100 * 3 * recent)})
	list := l.join(tasks)
	if len(list) != 3 {
		t.Fatalf("%d tasks: %+v", len(list), list)
	}
	n := 3 * recent
	faulted, other, running := list[0], list[1], list[2]
	if faulted.Task != n-3 || !faulted.Faulted || faulted.Slot != 1 || faulted.Request == nil || *faulted.Request != 1000+n-3 {
		t.Errorf("the faulted request: %+v", faulted)
	}
	if other.Task != n-1 || other.Faulted || other.Running || other.Request == nil || *other.Request != 1000+n-1 {
		t.Errorf("the last task of the other slot: %+v", other)
	}
	if running.Task != 5000 || !running.Running || running.Request != nil {
		t.Errorf("the running task: %+v", running)
	}
}

func TestFaultTellsWhatTheSlotsDid(t *testing.T) {
	p := fakePackage(t, "works")
	for fault, running := range map[string]bool{"null@9": false, "crash@9": true} {
		v := soak(t, RunOptions{Plan: fakePlan(t, p, fault, "load: {requests: 48, prompt_tokens: [24, 100], n_predict: [3, 7, 13, 21, 31], request_deadline: 20s}\n"), Package: p})
		if len(v.Faults) != 1 || len(v.Faults[0].Tasks) == 0 {
			t.Fatalf("%s: %s: faults %+v", fault, v.Reason, v.Faults)
		}
		f, found := v.Faults[0], false
		for _, task := range f.Tasks {
			if running && task.Running || !running && task.Faulted && task.Request != nil && *task.Request == *f.Request && task.Slot == *f.Slot {
				found = task.Selected == engine.SelectedLRU
			}
		}
		if !found {
			t.Errorf("%s: the slots did %+v", fault, f.Tasks)
		}
	}
}
