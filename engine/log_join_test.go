package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func joined(log string) ([]Task, *Joiner) {
	var tasks []Task
	j := &Joiner{Done: func(t Task) { tasks = append(tasks, t) }}
	for _, ev := range eventsOf(log) {
		j.Add(ev)
	}
	j.Flush()
	return tasks, j
}

// brief is what most tests look at.
func brief(tasks []Task) string {
	var out []string
	for _, t := range tasks {
		s := fmt.Sprintf("%d/%d.%d", t.Life, t.Slot, t.ID)
		if t.Router != 0 {
			s = fmt.Sprintf("%d:%s", t.Router, s)
		}
		if t.How != "" {
			s += " " + t.How
		}
		if t.NeverUsed {
			s += " first"
		}
		if t.Tokens > 0 {
			s += fmt.Sprintf(" %dt", t.Tokens)
		}
		if t.Cancelled {
			s += " cancelled"
		}
		if t.Error != "" {
			s += " error"
		}
		if !t.Finished {
			s += " unfinished"
		}
		if t.GuardLines > 0 {
			s += fmt.Sprintf(" %d guard", t.GuardLines)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func checkJoin(t *testing.T, log, want string, loose, orphans int) {
	t.Helper()
	tasks, j := joined(log)
	for _, task := range tasks {
		if task.Selected > task.Launched || task.Launched > task.Released {
			t.Errorf("a time runs back: %+v", task)
		}
	}
	if got := brief(tasks); got != want {
		t.Errorf("joined\n%s\nwant\n%s", got, want)
	}
	if j.Loose != loose || j.Orphans != orphans {
		t.Errorf("%d guard lines are loose, want %d; %d orphans, want %d", j.Loose, loose, j.Orphans, orphans)
	}
}

const startLog = "0.00.026.212 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'\n"

// The incident's shape: a never-used slot, one second after another one ended.
const incidentLog = startLog +
	`1.09.000.100 I slot get_availabl: id  3 | task -1 | selected slot by LCP similarity, f_sim_best = 0.252 (> 0.100 thold), f_keep = 0.472
1.09.000.300 I slot launch_slot_: id  3 | task 187 | processing task, is_child = 0
1.11.000.000 I slot print_timing: id  3 | task 187 | prompt eval time =     210.74 ms /   175 tokens (    1.20 ms per token,   830.42 tokens per second)
1.11.000.010 I slot print_timing: id  3 | task 187 |        eval time =    1624.04 ms /    29 tokens (   56.00 ms per token,    17.86 tokens per second)
1.11.000.020 I slot print_timing: id  3 | task 187 |       total time =    1834.78 ms /   204 tokens
1.11.000.030 I slot print_timing: id  3 | task 187 |    graphs reused =        190
1.11.000.040 I slot      release: id  3 | task 187 | stop processing: n_tokens = 262, truncated = 1
1.11.100.000 I slot get_availabl: id  2 | task -1 | selected slot by LRU, t_last = -1
1.11.100.200 I slot launch_slot_: id  2 | task 218 | processing task, is_child = 0
1.12.000.000 E common_sampler_sample: HRX returned NaN logits: count=151936 of 151936, index range [0..151935], contiguous=yes, continuing=no (engine#315)
/src/common/sampling.cpp:620: HRX: NaN logits (engine#123)
`

func TestJoin(t *testing.T) {
	tasks, j := joined(incidentLog)
	at := func(s string) time.Duration {
		ev, _ := ParseLogLine(s + " I srv  update_slots: all slots are idle")
		return ev.Time
	}
	want := []Task{
		{Life: 1, Slot: 3, ID: 187, How: SelectedLCP, NeverUsed: true, Similarity: 0.252, Finished: true, Truncated: true,
			Selected: at("1.09.000.100"), Launched: at("1.09.000.300"), Released: at("1.11.000.040"),
			PromptTokens: 175, PromptMS: 210.74, Tokens: 29, EvalMS: 1624.04, TotalMS: 1834.78, GraphsReused: 190, Context: 262},
		{Life: 1, Slot: 2, ID: 218, How: SelectedLRU, NeverUsed: true,
			Selected: at("1.11.100.000"), Launched: at("1.11.100.200"), Released: at("1.11.100.200"), GuardLines: 2},
	}
	guard := tasks[1].Guard
	tasks[1].Guard = nil
	if diff := cmp.Diff(want, tasks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(guard) != 2 || guard[0].NaN.Count != 151936 || !guard[1].NaNAbort || j.Loose != 0 || j.Orphans != 0 {
		t.Errorf("guard lines %+v, %d loose, %d orphans", guard, j.Loose, j.Orphans)
	}
}

func TestJoinOrders(t *testing.T) {
	selected := func(slot int) string {
		return fmt.Sprintf("slot get_availabl: id %2d | task -1 | selected slot by LRU, t_last = 5\n", slot)
	}
	launch := func(slot, task int) string {
		return fmt.Sprintf("slot launch_slot_: id %2d | task %d | processing task, is_child = 0\n", slot, task)
	}
	release := func(slot, task int) string {
		return fmt.Sprintf("slot      release: id %2d | task %d | stop processing: n_tokens = 9, truncated = 0\n", slot, task)
	}
	timing := func(slot, task, tokens int) string {
		return fmt.Sprintf("slot print_timing: id %2d | task %d |        eval time = 10.00 ms / %5d tokens\n", slot, task, tokens)
	}
	block := func(slot, task, tokens int) string {
		return fmt.Sprintf("slot print_timing: id %2d | task %d | \nprompt eval time = 1.00 ms / 3 tokens\n eval time = 10.00 ms / %5d tokens\n total time = 11.00 ms / 9 tokens\n", slot, task, tokens)
	}
	const start = "srv    load_model: initializing, n_slots = 4\n"
	const guard = "HRX returned NaN logits at vocab index 7\n"
	tests := []struct {
		name, log, want string
		loose, orphans  int
	}{
		{name: "timings after the release",
			log:  start + selected(0) + launch(0, 0) + launch(1, 1) + release(0, 0) + block(0, 0, 7) + selected(0) + launch(0, 2) + release(1, 1) + block(1, 1, 8) + release(0, 2) + block(0, 2, 9),
			want: "1/0.0 lru 7t, 1/1.1 first 8t, 1/0.2 lru 9t"},
		{name: "a selection belongs to the next launch on its slot",
			log:  start + selected(2) + selected(1) + launch(1, 5) + launch(2, 6) + launch(3, 7) + timing(3, 7, 1) + release(3, 7) + release(1, 5) + release(2, 6),
			want: "1/3.7 first 1t, 1/1.5 lru, 1/2.6 lru"},
		{name: "a selection is used once",
			log:  start + selected(1) + launch(1, 5) + release(1, 5) + launch(1, 6) + release(1, 6),
			want: "1/1.5 lru, 1/1.6"},
		{name: "task ids start again",
			log:  start + launch(0, 0) + release(0, 0) + launch(1, 1) + start + launch(0, 0) + timing(0, 0, 4) + release(0, 0),
			want: "1/0.0 first, 1/1.1 first unfinished, 2/0.0 first 4t"},
		{name: "a restart whose first lines are missing",
			log:  start + launch(0, 0) + launch(1, 1) + selected(0) + launch(0, 0) + release(0, 0),
			want: "1/0.0 first unfinished, 1/1.1 first unfinished, 2/0.0 lru"},
		{name: "the same, by its time",
			log: startLog + "0.10.000.000 I " + launch(0, 7) + "0.11.000.000 I " + release(0, 7) +
				"0.01.000.000 I " + launch(1, 3) + "0.02.000.000 I " + release(1, 3),
			want: "1/0.7 first, 2/1.3"},
		{name: "a small step back is no restart",
			log:  startLog + "0.10.000.000 I " + launch(0, 7) + "0.09.999.000 I " + launch(1, 6) + "0.09.998.000 I " + release(1, 6) + "0.11.000.000 I " + release(0, 7),
			want: "1/1.6 first, 1/0.7 first"},
		{name: "a step of the clock is no restart",
			log:  startLog + "0.10.000.000 I " + launch(0, 7) + "0.02.000.000 I " + launch(1, 8) + "0.01.000.000 I " + release(0, 7) + "9.09.000.000 I " + release(1, 8),
			want: "1/0.7 first, 1/1.8 first"},
		{name: "a lost release",
			log:  start + launch(0, 0) + launch(0, 1) + release(0, 1),
			want: "1/0.0 first unfinished, 1/0.1"},
		{name: "a log that begins in the middle",
			log:  release(0, 3) + timing(1, 4, 5) + launch(0, 5) + release(0, 5) + release(0, 4),
			want: "1/0.5", orphans: 3},
		{name: "cancelled, and answered with an error",
			log: start + launch(0, 0) + launch(1, 1) + "srv          stop: cancel task, id_task = 0\n" + release(0, 0) +
				"srv    send_error: task id = 1, error: request (10000 tokens) exceeds the available context size (8192 tokens), try increasing it\n" + release(1, 1) +
				"srv          stop: cancel task, id_task = 1\n",
			want: "1/0.0 first cancelled, 1/1.1 first error"},
		{name: "servers of a router with the same slots and tasks",
			log: "[41001] " + launch(0, 1) + "[41002] " + launch(0, 1) + "[41002] " + timing(0, 1, 2) + "[41002] " + release(0, 1) +
				"[41001] " + timing(0, 1, 1) + "[41001] " + release(0, 1),
			want: "41002:1/0.1 2t, 41001:1/0.1 1t"},
		{name: "a guard line while one task runs",
			log:  start + launch(0, 0) + guard + guard + release(0, 0) + launch(1, 1) + guard + release(1, 1),
			want: "1/0.0 first 2 guard, 1/1.1 first 1 guard"},
		{name: "a guard line while two run, and while none does",
			log:  start + launch(0, 0) + launch(1, 1) + guard + release(0, 0) + release(1, 1) + guard,
			want: "1/0.0 first, 1/1.1 first", loose: 2},
		{name: "a guard line where a task may run unseen",
			log:  launch(0, 9) + guard + release(0, 9),
			want: "1/0.9", loose: 1},
		{name: "a guard line at the very end of another task",
			log: startLog + "0.01.000.000 I " + launch(0, 0) + "0.01.500.000 I " + launch(1, 1) + "0.02.000.000 I " + release(0, 0) +
				"0.02.000.900 E " + guard + "0.02.500.000 E " + guard + "0.03.000.000 I " + release(1, 1),
			want: "1/0.0 first, 1/1.1 first 1 guard", loose: 1},
		{name: "a guard line of another server",
			log:  "[1] " + start + "[2] " + start + "[1] " + launch(0, 0) + "[2] " + guard + "[1] " + guard,
			want: "1:1/0.0 first unfinished 1 guard", loose: 1},
		{name: "slots that no server has",
			log: start + launch(5000, 0) + release(5000, 0), orphans: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkJoin(t, tt.log, tt.want, tt.loose, tt.orphans) })
	}
}

func TestJoinKeepsLittle(t *testing.T) {
	var b strings.Builder
	b.WriteString(startLog)
	b.WriteString("0.01.000.000 I slot launch_slot_: id  2 | task 9 | processing task, is_child = 0\n")
	for range 9000 {
		b.WriteString("0.02.000.000 E common_sampler_sample: HRX returned NaN logits: count=2 of 32, index range [3..9], contiguous=no, continuing=yes (engine#315)\n")
	}
	tasks, _ := joined(b.String())
	if len(tasks) != 1 || tasks[0].GuardLines != 9000 || len(tasks[0].Guard) != maxGuard {
		t.Errorf("%d tasks, %d guard lines, %d of them kept", len(tasks), tasks[0].GuardLines, len(tasks[0].Guard))
	}
	b.Reset()
	for port := range 1000 {
		fmt.Fprintf(&b, "[%d] slot launch_slot_: id  0 | task 1 | processing task\n", port+1)
	}
	tasks, j := joined(b.String())
	if len(tasks) != 1000 || len(j.routers) > maxServers {
		t.Errorf("%d tasks, %d servers kept", len(tasks), len(j.routers))
	}
}
