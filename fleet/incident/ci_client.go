package incident

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-github/v60/github"
)

// ciAnswer bounds one answer of the API, in bytes. A page of a hundred runs takes two or three MiB.
const ciAnswer = 32 << 20

// github makes a client for a base that was checked.
func (c *CI) github() *github.Client {
	base, err := c.base()
	if err != nil {
		return nil
	}
	plain := http.Client{}
	if c.Client != nil {
		plain = *c.Client
	}
	if plain.Transport == nil {
		plain.Transport = http.DefaultTransport
	}
	plain.Transport = &ciTransport{base: base, token: c.Token, next: plain.Transport}
	client := github.NewClient(&plain)
	client.BaseURL = base
	return client
}

// A ciTransport adds the token to what goes to the API's own host, whatever an answer redirects to, and bounds the
// answers.
type ciTransport struct {
	base  *url.URL
	token string
	next  http.RoundTripper
}

func (t *ciTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if t.token != "" && req.URL.Scheme == t.base.Scheme && req.URL.Host == t.base.Host && private(req.URL) {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, ciAnswer), resp.Body}
	return resp, nil
}

// private tells whether what is sent to an address is read by nobody on the way.
func private(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// words say what went wrong and what would help.
func (c *CI) words(err error) string {
	var (
		limit  *github.RateLimitError
		abuse  *github.AbuseRateLimitError
		answer *github.ErrorResponse
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	more := ""
	if c.Token == "" {
		more = ": a token in GITHUB_TOKEN would allow more"
	}
	switch {
	case errors.Is(err, errTooMany):
		return "there are more than were read: some may be missing" + more
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", ciWait)
	case errors.As(err, &limit):
		return fmt.Sprintf("the limit of requests is reached until %s%s", limit.Rate.Reset.UTC().Format(time.RFC3339), more)
	case errors.As(err, &abuse):
		return "too many requests in a short time: ask again later" + more
	case errors.As(err, &answer):
		return c.status(answer.Response.StatusCode, more)
	case errors.As(err, &syntax), errors.As(err, &typed), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errNoRuns):
		return fmt.Sprintf("the answer is none of GitHub's API: look at ci_api (%s) and at what stands between", c.address())
	}
	return err.Error()
}

func (c *CI) address() string {
	if base, err := c.base(); err == nil {
		return base.String()
	}
	return c.API
}

func (c *CI) status(code int, more string) string {
	text := fmt.Sprintf("%s answers %d %s", c.address(), code, http.StatusText(code))
	switch {
	case code == http.StatusUnauthorized:
		return text + ": the token of GITHUB_TOKEN or GH_TOKEN is not valid"
	case code == http.StatusTooManyRequests:
		return text + ": ask again later" + more
	case code == http.StatusNotFound && c.Token == "":
		return text + ": look at ci_repository; a private repository needs a token in GITHUB_TOKEN"
	case code == http.StatusNotFound, code == http.StatusForbidden:
		return text + ": look at ci_repository, and whether the token may read its Actions"
	}
	return text
}
