package incident

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The window of the recorded answers.
var (
	ciFrom = time.Date(2026, 10, 23, 9, 45, 12, 0, time.UTC)
	ciTo   = time.Date(2026, 10, 23, 10, 50, 18, 0, time.UTC)
)

// recordedRun is a run as GitHub tells it, shortened.
func recordedRun(id int64, status, created, updated string) string {
	return fmt.Sprintf(`{"id":%d,"name":"Hardware gate","head_branch":"main","head_sha":"f061e5df","path":".github/workflows/hw-gate.yml@main",
		"display_title":"gpu-kernels 744bd713d968","run_number":412,"event":"push","status":%q,"conclusion":null,"workflow_id":9,
		"html_url":"https://github.com/1bit-systems/engine/actions/runs/%d","created_at":%q,"updated_at":%q,"run_attempt":1,
		"run_started_at":%q,"actor":{"login":"x"},"repository":{"id":1}}`, id, status, id, created, updated, created)
}

// actions is a double of the API: it filters as GitHub does and tells two runs a page.
type actions struct {
	*httptest.Server
	runs   []string
	asked  []string
	tokens []string
	fail   func(w http.ResponseWriter, r *http.Request, n int) bool // of the n-th request
}

func newActions(t *testing.T, runs ...string) *actions {
	a := &actions{runs: runs}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *actions) serve(w http.ResponseWriter, r *http.Request) {
	a.asked = append(a.asked, r.URL.String())
	a.tokens = append(a.tokens, r.Header.Get("Authorization"))
	if a.fail != nil && a.fail(w, r, len(a.asked)) {
		return
	}
	if r.URL.Path != "/repos/1bit-systems/engine/actions/runs" {
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
		return
	}
	var fit []json.RawMessage
	for _, text := range a.runs {
		var run struct {
			Created time.Time `json:"created_at"`
			Status  string    `json:"status"`
		}
		if json.Unmarshal([]byte(text), &run) != nil {
			continue
		}
		q := r.URL.Query()
		if begin, end, ok := strings.Cut(q.Get("created"), ".."); ok {
			from, _ := time.Parse(time.RFC3339, begin)
			to, _ := time.Parse(time.RFC3339, end)
			if run.Created.Before(from) || run.Created.After(to) {
				continue
			}
		}
		if s := q.Get("status"); s == "" || s == run.Status {
			fit = append(fit, json.RawMessage(text))
		}
	}
	const size = 2
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	begin, end := min((page-1)*size, len(fit)), min(page*size, len(fit))
	if end < len(fit) {
		next := *r.URL
		q := next.Query()
		q.Set("page", strconv.Itoa(page+1))
		next.RawQuery = q.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<%s%s>; rel="next"`, a.URL, next.String()))
	}
	answer := map[string]any{"total_count": len(fit), "workflow_runs": append([]json.RawMessage{}, fit[begin:end]...)}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (a *actions) ci() *CI {
	return &CI{Repository: "1bit-systems/engine", API: a.URL, Token: "ghs_verysecrettoken", Client: a.Client()}
}

func ids(runs []Run) []int64 {
	var out []int64
	for _, r := range runs {
		out = append(out, r.ID)
	}
	return out
}

func TestOverlappingRuns(t *testing.T) {
	a := newActions(t,
		recordedRun(39940594897, "completed", "2026-10-23T10:39:01Z", "2026-10-23T10:46:28Z"),
		recordedRun(11, "completed", "2026-10-23T10:00:00Z", "2026-10-23T10:01:00Z"),
		recordedRun(12, "completed", "2026-10-23T08:00:00Z", "2026-10-23T09:45:11Z"), // ended a second before
		recordedRun(13, "completed", "2026-10-23T02:00:00Z", "2026-10-23T11:00:00Z"), // began hours before and went on
		recordedRun(14, "completed", "2026-10-20T02:00:00Z", "2026-10-23T10:00:00Z"), // three days
		recordedRun(15, "in_progress", "2026-10-01T02:00:00Z", "2026-10-01T02:00:00Z"),
		recordedRun(16, "completed", "2026-10-23T10:50:19Z", "2026-10-23T10:55:00Z"), // began after
		recordedRun(17, "completed", "2026-10-23T10:41:00Z", "2026-10-23T10:42:00Z"),
	)
	runs, raw, missing := a.ci().overlapping(t.Context(), ciFrom, ciTo)
	if d := cmp.Diff([]int64{15, 14, 13, 11, 39940594897, 17}, ids(runs)); d != "" || len(missing) > 0 || len(raw) != len(runs) {
		t.Fatal(d, missing, len(raw))
	}
	want := Run{
		ID: 39940594897, Workflow: "hw-gate.yml", Name: "Hardware gate", Head: "f061e5df", Title: "gpu-kernels 744bd713d968",
		Status: "completed", URL: "https://github.com/1bit-systems/engine/actions/runs/39940594897", Attempt: 1,
		Created: time.Date(2026, 10, 23, 10, 39, 1, 0, time.UTC), Updated: time.Date(2026, 10, 23, 10, 46, 28, 0, time.UTC),
		Started: time.Date(2026, 10, 23, 10, 39, 1, 0, time.UTC),
	}
	if d := cmp.Diff(want, runs[4]); d != "" {
		t.Error(d)
	}
	for i, token := range a.tokens {
		if token != "Bearer ghs_verysecrettoken" {
			t.Errorf("%s was asked with %q", a.asked[i], token)
		}
	}
}

// What goes wrong is one line that says what to do, and what was told before comes all the same.
func TestOverlappingRunsFail(t *testing.T) {
	answer := func(code int, header map[string]string, body string) func(http.ResponseWriter, *http.Request, int) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			for k, v := range header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	for _, test := range []struct {
		name    string
		fail    func(w http.ResponseWriter, r *http.Request, n int) bool
		change  func(*CI)
		want    string
		partial bool
	}{
		{name: "not found", fail: answer(404, nil, `{"message":"Not Found"}`), want: "answers 404 Not Found: look at ci_repository, and whether the token may read its Actions"},
		{name: "not found without a token", fail: answer(404, nil, `{}`), change: func(c *CI) { c.Token = "" }, want: "a private repository needs a token in GITHUB_TOKEN"},
		{name: "bad token", fail: answer(401, nil, `{"message":"Bad credentials"}`), want: "the token of GITHUB_TOKEN or GH_TOKEN is not valid"},
		{name: "forbidden", fail: answer(403, nil, `{"message":"Resource not accessible"}`), want: "answers 403 Forbidden: look at ci_repository, and whether the token may read"},
		{name: "rate limit", fail: answer(403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "60", "X-RateLimit-Reset": "1792750000"}, `{"message":"API rate limit exceeded"}`),
			change: func(c *CI) { c.Token = "" }, want: "the limit of requests is reached until 2026-10-23T10:06:40Z: a token in GITHUB_TOKEN would allow more"},
		{name: "secondary limit", fail: answer(403, map[string]string{"Retry-After": "60"}, `{"message":"slow down","documentation_url":"https://docs.github.com/x#secondary-rate-limits"}`), want: "too many requests in a short time"},
		{name: "too many", fail: answer(429, nil, ""), want: "answers 429 Too Many Requests: ask again later"},
		{name: "server error", fail: answer(502, nil, "<html>bad gateway"), want: "answers 502 Bad Gateway"},
		{name: "a page of a proxy", fail: answer(200, map[string]string{"Content-Type": "text/html"}, "<html>log in</html>"), want: "the answer is none of GitHub's API: look at ci_api"},
		{name: "other JSON", fail: answer(200, nil, `{"workflow_runs":{"id":"x"}}`), want: "the answer is none of GitHub's API"},
		{name: "a run that is none", fail: answer(200, nil, `{"total_count":1,"workflow_runs":[17]}`), want: "the answer is none of GitHub's API"},
		{name: "nothing", fail: answer(200, nil, ""), want: "the answer is none of GitHub's API"},
		{name: "cut off", fail: answer(200, nil, `{"total_count":1,"workflow_runs":[`), want: "the answer is none of GitHub's API"},
		{name: "no network", change: func(c *CI) { c.API = "http://127.0.0.1:1" }, want: "connection refused"},
		{name: "bad repository", change: func(c *CI) { c.Repository = "../../user" }, want: "is no repository: it is owner/name"},
		{name: "bad address", change: func(c *CI) { c.API = "ftp://x" }, want: "is no address of an API"},
		{name: "secret in the address", change: func(c *CI) { c.API = "https://me:ghs_verysecrettoken@example.org" }, want: "the address of the API has a user"},
		{name: "second page fails", partial: true, want: "answers 500", fail: func(w http.ResponseWriter, r *http.Request, n int) bool {
			return n == 2 && answer(500, nil, "")(w, r, n)
		}},
		{name: "no end", want: "there are more than were read", partial: true, fail: func(w http.ResponseWriter, r *http.Request, n int) bool {
			w.Header().Set("Link", fmt.Sprintf(`<http://x/?page=%d>; rel="next"`, n+1))
			fmt.Fprintf(w, `{"total_count":1000000,"workflow_runs":[%s]}`, recordedRun(int64(n), "completed", "2026-10-23T10:39:01Z", "2026-10-23T10:46:28Z"))
			return true
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newActions(t,
				recordedRun(1, "completed", "2026-10-23T10:39:01Z", "2026-10-23T10:46:28Z"),
				recordedRun(2, "completed", "2026-10-23T10:00:00Z", "2026-10-23T10:01:00Z"),
				recordedRun(3, "completed", "2026-10-23T10:10:00Z", "2026-10-23T10:11:00Z"))
			a.fail = test.fail
			c := a.ci()
			if test.change != nil {
				test.change(c)
			}
			runs, _, missing := c.overlapping(t.Context(), ciFrom, ciTo)
			if len(missing) != 1 || !strings.Contains(missing[0], test.want) {
				t.Errorf("missing: %q, want %q", missing, test.want)
			}
			if text := strings.Join(missing, ""); strings.Contains(text, "verysecret") || strings.Contains(text, "\n") {
				t.Errorf("it says %q", text)
			}
			if test.partial != (len(runs) > 0) {
				t.Errorf("runs: %v", ids(runs))
			}
			if len(a.asked) > ciRequests {
				t.Errorf("asked %d times", len(a.asked))
			}
		})
	}
}

// An API that does not answer keeps a report waiting for a while only.
func TestOverlappingRunsSilent(t *testing.T) {
	gone := make(chan struct{})
	a := newActions(t)
	a.fail = func(http.ResponseWriter, *http.Request, int) bool { <-gone; return true }
	defer close(gone)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, missing := a.ci().overlapping(ctx, ciFrom, ciTo); len(missing) != 1 || !strings.Contains(missing[0], "no answer within") {
		t.Errorf("missing: %q", missing)
	}
}

// A token goes to the API's own host, whatever an answer redirects to.
func TestOverlappingRunsRedirect(t *testing.T) {
	real := newActions(t, recordedRun(1, "completed", "2026-10-23T10:39:01Z", "2026-10-23T10:46:28Z"))
	front := newActions(t)
	for _, same := range []bool{true, false} {
		front.fail = func(w http.ResponseWriter, r *http.Request, _ int) bool {
			to := url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}
			target := real.URL
			if same {
				if r.URL.Path == "/repos/1bit-systems/engine/actions/runs" {
					return false
				}
				target, to.Path = front.URL, "/repos/1bit-systems/engine/actions/runs"
			}
			http.Redirect(w, r, target+to.String(), http.StatusMovedPermanently)
			return true
		}
		front.asked, front.tokens, real.tokens = nil, nil, nil
		front.runs = real.runs
		c := front.ci()
		if same {
			c.Repository = "1bit-systems/old-name"
		}
		runs, _, missing := c.overlapping(t.Context(), ciFrom, ciTo)
		if len(runs) != 1 || len(missing) > 0 {
			t.Errorf("same host %v: %v %q", same, ids(runs), missing)
		}
		for _, token := range real.tokens {
			if token != "" {
				t.Errorf("the token went to another host: %q", token)
			}
		}
		for i, token := range front.tokens {
			if token == "" {
				t.Errorf("%s was asked without the token", front.asked[i])
			}
		}
	}
}

// Over a network that others can read no token is sent.
func TestTokenStaysPrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"https://api.github.com/": true, "http://127.0.0.1:1/": true, "http://localhost/": true, "http://[::1]/": true,
		"http://github.example.org/": false, "http://127.0.0.1.example.org/": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if private(u) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
}

func FuzzActionsAnswer(f *testing.F) {
	f.Add(`{"total_count":1,"workflow_runs":[` + recordedRun(1, "completed", "2026-10-23T10:39:01Z", "2026-10-23T10:46:28Z") + `]}`)
	f.Add(`{"workflow_runs":[null]}`)
	f.Add(`{"workflow_runs":[{"created_at":1698050341,"path":"@/.."}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		c := &CI{Repository: "a/b", Client: &http.Client{Transport: answering(body)}}
		runs, raw, missing := c.overlapping(t.Context(), ciFrom, ciTo)
		if len(runs) != len(raw) {
			t.Errorf("%d runs and %d of GitHub's", len(runs), len(raw))
		}
		for _, run := range runs {
			if run.Created.After(ciTo) || run.Status == "completed" && run.Updated.Before(ciFrom) || strings.Contains(run.Workflow, "/") && run.Workflow != "/" {
				t.Errorf("%+v", run)
			}
		}
		for _, line := range missing {
			if strings.Contains(line, "\n") {
				t.Errorf("missing: %q", line)
			}
		}
	})
}

// answering gives one answer to every question.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteString(string(a))
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
