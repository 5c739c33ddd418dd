package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPulse(t *testing.T) {
	var now time.Duration
	var gaps []time.Duration
	const limit = 3 * time.Second
	p := newPulse(func() time.Duration { return now }, limit, func(gap time.Duration) { gaps = append(gaps, gap) })
	for _, step := range []time.Duration{pauseEvery, limit, limit + 1, 0, time.Hour, pauseEvery} {
		now += step
		p.beat()
	}
	if diff := cmp.Diff([]time.Duration{limit + 1, time.Hour}, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}

func TestPauseLimit(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 30 * time.Second: 3 * time.Second, 3 * time.Minute: 10 * time.Second, time.Hour: 10 * time.Second,
	} {
		if got := pauseLimit(Duration(deadline)); got != want {
			t.Errorf("%s: %s, want %s", deadline, got, want)
		}
	}
}

// A runner that is stopped for longer than a request may take has no fault to
// tell of: the server had answered.
func TestStoppedRunnerBlamesNobody(t *testing.T) {
	p := fakePackage(t, "works")
	k := newKillable(t, p, fakePlan(t, p, "", "load: {requests: 20000, prompt_tokens: [24], n_predict: [20], request_deadline: 1s}\n"))
	runner := k.start(t)
	until(t, "requests", func() bool { return k.recorded() > 4 })
	if err := runner.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second / 2)
	if err := runner.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := runner.Wait(); err != nil {
		t.Fatal(err)
	}
	v, err := JudgeDir(k.evidence)
	if err != nil {
		t.Fatal(err)
	}
	if v.Verdict != Inconclusive || v.Arms.Invalid != 1 || !strings.HasPrefix(v.Reason, "invalid(watchdog): runner-paused was ") {
		t.Errorf("%s: %s, %+v", v.Verdict, v.Reason, v.Arms)
	}
	noneLeft(t, p.Path)
}
