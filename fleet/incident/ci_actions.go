package incident

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// CI is a repository whose GitHub Actions may have used the same GPU.
type CI struct {
	Repository string       // owner/name
	API        string       // base URL of the API, "": GitHub's
	Token      string       // "": none, which is enough for a public repository; it is sent to API's host alone
	Client     *http.Client // nil: http.DefaultClient
}

// How far to look, and how long. GitHub can filter runs by when they were created and not by when they ended: a job may
// take five days on a machine of one's own, so those created that long before the window are asked for too. It tells no
// more than a thousand runs of one question.
const (
	ciLongest  = 5 * 24 * time.Hour
	ciWait     = 30 * time.Second
	ciPages    = 10 // of one question
	ciRequests = 30 // without a token GitHub answers 60 an hour
	ciPageSize = 100
)

var reRepository = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}$`)

// Check tells what is wrong with the repository or the address of the API; nil if nothing.
func (c *CI) Check() error {
	if _, name, _ := strings.Cut(c.Repository, "/"); !reRepository().MatchString(c.Repository) || strings.Trim(name, ".") == "" {
		return fmt.Errorf("%q is no repository: it is owner/name", c.Repository)
	}
	_, err := c.base()
	return err
}

func (c *CI) base() (*url.URL, error) {
	base, err := url.Parse(cmp.Or(c.API, "https://api.github.com/"))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, fmt.Errorf("%q is no address of an API: it is one such as https://github.example.org/api/v3/", c.API)
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the address of the API has a user, a query or a fragment: it is one such as https://github.example.org/api/v3/")
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	return base, nil
}

// workflowRun is a run as GitHub tells it. The library does not know its path.
type workflowRun struct {
	github.WorkflowRun
	Path string `json:"path"` // such as .github/workflows/hw-gate.yml, with @ and a branch behind it for one of another repository
}

type workflowRuns struct {
	Total int               `json:"total_count"`
	Runs  []json.RawMessage `json:"workflow_runs"`
}

// ciReader asks for runs until it has asked often enough.
type ciReader struct {
	client   *github.Client
	path     string
	requests int
	found    map[int64]Run
	raw      map[int64]json.RawMessage
}

// overlapping lists the runs that were under way at some time from from to to, the oldest first, and the same as GitHub
// tells them. What could not be told is in missing; the runs that were told before come all the same. A run that was started again long after it was
// created, and has ended since, is not found.
func (c *CI) overlapping(ctx context.Context, from, to time.Time) (runs []Run, raw []json.RawMessage, missing []string) {
	if err := c.Check(); err != nil {
		return nil, nil, []string{"CI runs: " + err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, ciWait)
	defer cancel()
	r := &ciReader{client: c.github(), path: "repos/" + c.Repository + "/actions/runs", found: map[int64]Run{}, raw: map[int64]json.RawMessage{}}
	for _, ask := range []github.ListWorkflowRunsOptions{
		{Created: between(from.Add(-6*time.Hour), to)},
		{Status: "in_progress"}, // whenever it was created
		{Created: between(from.Add(-24*time.Hour), from.Add(-6*time.Hour))},
		{Created: between(from.Add(-ciLongest), from.Add(-24*time.Hour))},
	} {
		err := r.ask(ctx, ask)
		if err != nil {
			missing = append(missing, fmt.Sprintf("CI runs of %s: %s", c.Repository, c.words(err)))
		}
		if err != nil && !errors.Is(err, errTooMany) {
			break
		}
	}
	for _, run := range r.found {
		if !run.Created.After(to) && (run.Status != "completed" || !run.Updated.Before(from)) {
			runs = append(runs, run)
		}
	}
	missing = slices.Compact(missing)
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	for _, run := range runs {
		raw = append(raw, r.raw[run.ID])
	}
	return runs, raw, missing
}

func between(from, to time.Time) string {
	return from.UTC().Format(time.RFC3339) + ".." + to.UTC().Format(time.RFC3339)
}

// errTooMany says that there is more than was read.
var errTooMany = errors.New("there are more than were read")

// ask reads all pages of one question.
func (r *ciReader) ask(ctx context.Context, opts github.ListWorkflowRunsOptions) error {
	for page := 1; page != 0; {
		if page > ciPages || r.requests >= ciRequests {
			return errTooMany
		}
		r.requests++
		next, err := r.page(ctx, opts, page)
		if err != nil {
			return err
		}
		page = next
	}
	return nil
}

func (r *ciReader) page(ctx context.Context, opts github.ListWorkflowRunsOptions, page int) (next int, err error) {
	query := url.Values{"per_page": {fmt.Sprint(ciPageSize)}, "page": {fmt.Sprint(page)}}
	for key, value := range map[string]string{"created": opts.Created, "status": opts.Status} {
		if value != "" {
			query.Set(key, value)
		}
	}
	req, err := r.client.NewRequest(http.MethodGet, r.path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, err
	}
	var answer workflowRuns
	resp, err := r.client.Do(ctx, req, &answer)
	if err != nil {
		return 0, err
	}
	if answer.Runs == nil {
		return 0, errNoRuns
	}
	for _, raw := range answer.Runs {
		var run workflowRun
		if err := json.Unmarshal(raw, &run); err != nil {
			return 0, err
		}
		if run.GetID() <= 0 {
			return 0, errNoRuns
		}
		r.found[run.GetID()], r.raw[run.GetID()] = run.run(), raw
	}
	switch full := page*ciPageSize < answer.Total; {
	case resp.NextPage > page:
		return resp.NextPage, nil
	case resp.NextPage == 0 && full && len(answer.Runs) == ciPageSize:
		return 0, errTooMany // GitHub ends after a thousand
	}
	return 0, nil
}

// errNoRuns says that an answer is none of the API's.
var errNoRuns = errors.New("the answer lists no runs")

func (w *workflowRun) run() Run {
	file, _, _ := strings.Cut(w.Path, "@")
	if file != "" {
		file = path.Base(file)
	}
	return Run{
		ID: w.GetID(), Workflow: file, Name: w.GetName(), Head: w.GetHeadSHA(), Title: w.GetDisplayTitle(),
		Status: w.GetStatus(), Conclusion: w.GetConclusion(), URL: w.GetHTMLURL(), Attempt: w.GetRunAttempt(),
		Created: w.GetCreatedAt().Time, Updated: w.GetUpdatedAt().Time, Started: w.GetRunStartedAt().Time,
	}
}
