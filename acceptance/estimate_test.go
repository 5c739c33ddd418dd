package acceptance

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The bounds of the default plan are those that the specification of the method works out.
func TestEstimateOfTheDefaultPlan(t *testing.T) {
	p, err := OpenPlan("default")
	if err != nil {
		t.Fatal(err)
	}
	e := p.Estimate(EstimateInput{})
	near(t, "arm", e.Bounds.ArmUpper95, 0.048703)
	near(t, "request", e.Bounds.RequestUpper95, 0.001995)
	near(t, "request, correlated", e.Bounds.RequestUpper95ICC01, 0.006767)
	near(t, "worst length", e.Bounds.WorstBinUpper95, 0.007957)
	near(t, "never-used slot", e.Bounds.NeverUsedSlotUpper95, 0.012405)
	near(t, "see at p0", *e.SeeAtP0, 1-0.046070)
	if e.RequiredN != 59 || *e.PlannedN != 60 || e.Requests != 1500 || e.CandidateLives != 60 || e.Attempts != 80 || !e.CanPass {
		t.Errorf("%+v", e)
	}
	if text := strings.Join(e.CannotShow, "\n"); !strings.Contains(text, "up for hours") || !strings.Contains(text, "server, ops, memory, none") {
		t.Errorf("cannot show: %s", text)
	}
}

func TestEstimateClaims(t *testing.T) {
	tests := []struct {
		yaml             string
		can, cannot, not string
	}{
		{"load: {requests: 1500}\nprimary: request\n", "a fault in 1 of 20 requests", "other server lives: there is one, which bounds their rate at 0.95", ""},
		{"load: {requests: 1500, logprobs_share: 0.25}\n", "0.007957 a request, by 375 that", "NaN in 75 % of the requests", ""},
		{"load: {requests: 1500}\nfaces: {leak: 'off'}\n", "", "face leak: it is off", ""},
		{"load: {requests: 1500}\nsentinels: {every: 10}\n", "", "", "needs sentinels"},
		{"load: {requests: 66, prompt_tokens: [24, 100, 200, 300]}\nsentinels: {every: 8, prompt_tokens: [50]}\n", "at most 0.192636 a request of the least frequent", "", ""},
		{"load: {requests: 66}\nsentinels: {every: 8, prompt_tokens: [50]}\n", "at most 0.631597 the first task on a slot", "", ""},
		{"load: {requests: 66, api: completions}\n", "", "", "the first task on a slot"},
		{"load: {requests: 1500}\nfinal_probe: false\n", "", "face corruption: it needs sentinels", ""},
		{"load: {requests: 1500}\n", "", "face numeric: it needs sentinels", "face corruption"},
		{"load: {requests: 9}\narms: [{name: a, lives: 2}, {name: b, role: control, neighbour: {kind: ops}}]\n", "by 2 lives", "a rate from control and baseline arms", "another kind: none"},
		{"load: {requests: 24, logprobs_share: 0.0001}\narms: [{name: a, lives: 9}]\nprimary: arm\n", "", "NaN in 99.99 % of the requests", "at most"},
		{"load: {duration: 3h}\nprimary: hour\n", "an hour of load", "up for longer than 3h", "for hours: a life"},
	}
	for _, tt := range tests {
		e := testPlan(t, tt.yaml).Estimate(EstimateInput{})
		can, cannot := strings.Join(e.CanShow, "\n"), strings.Join(e.CannotShow, "\n")
		if !strings.Contains(can, tt.can) || !strings.Contains(cannot, tt.cannot) || tt.not != "" && strings.Contains(can+cannot, tt.not) {
			t.Errorf("%s\ncan show\n%s\ncannot show\n%s", tt.yaml, can, cannot)
		}
	}
}

func TestEstimateNamesArmsOfAnotherPackage(t *testing.T) {
	e := testPlan(t, "load: {requests: 60, n_predict: [32]}\narms: [{name: a}, {name: b, role: baseline}, {name: c, role: baseline, package: hrx-1}]\n").Estimate(EstimateInput{})
	if diff := cmp.Diff([]string{"arm b runs the package that is given as baseline"}, e.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestEstimateDuration(t *testing.T) {
	p := testPlan(t, "load: {requests: 25, prompt_tokens: [100], n_predict: [50]}\narms: [{name: a, lives: 60}]\nprimary: arm\nattempts: 62\n")
	e := p.Estimate(EstimateInput{LoadTime: 10 * time.Second, TokensPerSecond: 100})
	// A life: 10 s, 25 prompts of 100 tokens at 500 a second, 25 answers of 50 at 100; and the end.
	if e.MinSeconds < 60*27.5 || e.MinSeconds > 60*28 || e.MaxSeconds < 62*27.5 || e.MaxSeconds > 62*40 {
		t.Errorf("%.0f to %.0f s", e.MinSeconds, e.MaxSeconds)
	}
	burst := testPlan(t, "load: {requests: 40, schedule: burst, every: 1m}\n").Estimate(EstimateInput{LoadTime: time.Second, TokensPerSecond: 1e6})
	if burst.MinSeconds < 9*60 || burst.MinSeconds > 9*60+10 {
		t.Errorf("10 bursts a minute apart: %.0f s", burst.MinSeconds)
	}
	if guess := p.Estimate(EstimateInput{ModelBytes: 2.5e9}); guess.MinSeconds > guess.MaxSeconds || guess.MaxSeconds > 24*3600 || len(guess.Assumed) != 2 {
		t.Errorf("%+v", guess)
	}
}

// A plan that is read from its own JSON is the same plan.
func TestPlanJSON(t *testing.T) {
	for _, name := range ReadyPlans() {
		p, err := OpenPlan(name)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again Plan
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again.file = p.file
		again.setDefaults()
		if diff := cmp.Diff(p, &again, cmp.AllowUnexported(Plan{})); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
