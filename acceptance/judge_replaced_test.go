package acceptance

import (
	"flag"
	"strings"
	"testing"
)

// 19: what was no evidence is replaced, up to the cap, and listed.
func TestClassificationInvalidLivesAreReplaced(t *testing.T) {
	s := manyLives(60, 80)
	again := func(i int, spoil func(*lifeStory)) {
		l := cleanLife(25)
		l.start.Life = i + 1
		l.start.Replaces = i + 1
		spoil(s.lives[i])
		s.lives = append(s.lives, l)
	}
	s.plan = strings.Replace(s.plan, "slot: 5", "slot: 5, gtt_used_gib: {min: 95, max: 110}", 1)
	for i := range 5 {
		again(i, func(l *lifeStory) { l.cut(3); l.end.Why, l.end.Detail = whyInterrupted, "the port went away" })
	}
	for i := 5; i < 8; i++ {
		again(i, func(l *lifeStory) { l.load.GTTUsedGiB = number(94) })
	}
	for _, l := range s.lives {
		if l.load.GTTUsedGiB == nil {
			l.load.GTTUsedGiB = number(100)
		}
	}
	v := s.verdict(t)
	want(t, v, Pass, "0 faults in 60 server lives: the rate is at most 0.048703 per server life")
	near(t, "per life", v.Bounds.ArmUpper95, 0.048703)
	if v.Arms != (ArmCounts{Clean: 60, Invalid: 5, OutOfRegime: 3}) {
		t.Errorf("%+v", v.Arms)
	}
	listed := 0
	for _, state := range v.ArmStates {
		if state.Reason != "clean" && state.Detail != "" {
			listed++
		}
	}
	if listed != 8 {
		t.Errorf("%d lives are listed with their reasons", listed)
	}
	if v.Rows[0].Lives != 60 || v.Rows[0].States != v.Arms || v.Rows[0].Requests != 1500 {
		t.Errorf("%+v", v.Rows[0])
	}
}

// 19: too many invalid lives are no accident. One is never too many.
func TestClassificationManyInvalid(t *testing.T) {
	for _, tt := range []struct {
		lives, invalid int
		want           string
		reason         string
	}{
		{60, 15, Pass, "0 faults in 60 server lives"},
		{60, 16, Inconclusive, "16 of 76 lives were invalid (candidate), where one may be, and of more than one at most one in 5"},
		{1, 1, Pass, "0 faults in 25 requests"},
		{1, 2, Inconclusive, "2 of 3 lives were invalid"},
		{3, 1, Pass, "0 faults in 3 server lives"},
		{7, 2, Inconclusive, "2 of 9 lives were invalid"},
		{8, 2, Pass, "0 faults in 8 server lives"},
	} {
		s := manyLives(tt.lives, 100)
		if tt.lives == 1 {
			s.plan = strings.Replace(s.plan, "primary: arm\n", "", 1)
		}
		if tt.lives < 60 {
			s.plan = strings.Replace(s.plan, "p0: 0.05", "p0: 0.96", 1)
		}
		for range tt.invalid {
			l := cleanLife(25)
			l.end.Why = whyInterrupted
			s.lives = append([]*lifeStory{l}, s.lives...)
		}
		want(t, s.verdict(t), tt.want, tt.reason)
	}
}

// 19: lives of a baseline do not make up for invalid ones of the candidate.
func TestClassificationBaselineDoesNotDilute(t *testing.T) {
	s := manyLives(3, 40)
	s.plan = strings.NewReplacer("p0: 0.05", "p0: 0.64", "lives: 3}", "lives: 3}, {name: old, role: baseline, lives: 12}").Replace(s.plan)
	for i := range 12 {
		l := cleanLife(25)
		l.start.Planned, l.start.Life = 1, i+1
		s.lives = append(s.lives, l)
	}
	want(t, s.verdict(t), Pass, "0 faults in 3 server lives")
	for range 3 {
		l := cleanLife(25)
		l.end.Why = whyInterrupted
		s.lives = append([]*lifeStory{l}, s.lives...)
	}
	want(t, s.verdict(t), Inconclusive, "3 of 6 lives were invalid (candidate)")
}

// 20: N is reached or it is not.
func TestClassificationCapReached(t *testing.T) {
	s := manyLives(60, 60)
	s.lives[17].end.Shape.LCP = 3
	v := s.verdict(t)
	want(t, v, Inconclusive, "only 59 of 60 lives are evidence; arm 18: invalid(load-shape)")
	near(t, "of what there is", v.Bounds.ArmUpper95, 0.049508)
	s = manyLives(60, 60)
	s.lives = s.lives[:59]
	want(t, s.verdict(t), Inconclusive, "only 59 of 60 lives were lived")
}

var update = flag.Bool("update", false, "rewrite golden files")
